#include "admin/docs_page.hpp"

#include <openssl/evp.h>

#include <array>
#include <string>

#include "admin/problem.hpp"
#include "fairlead/base/base64.hpp"
#include "fairlead/process/failure.hpp"

namespace fairlead::admin {

namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#0a6ebd}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem;text-transform:capitalize}
input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem .75rem;margin:1rem 0;border:1px solid var(--line);border-radius:.4rem;background:transparent;color:inherit}
details{border:1px solid var(--line);border-radius:.4rem;margin:.4rem 0}
summary{padding:.4rem .75rem;cursor:pointer;display:flex;gap:.75rem;flex-wrap:wrap;align-items:baseline}
summary b{min-width:4rem;color:var(--accent)}summary span{opacity:.75}
code,pre{font:13px/1.45 ui-monospace,monospace}
pre{background:var(--soft);padding:.75rem;border-radius:.4rem;overflow:auto;max-height:24rem}
.body{padding:0 .75rem .75rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .5rem .25rem 0;border-bottom:1px solid var(--line)}
.delete b{color:#c0392b}.post b{color:#1e8449}.patch b,.put b{color:#b9770e}
)css";

// Builds all elements with textContent, so that no text of the document is interpreted as HTML.
constexpr std::string_view kScript = R"js(
"use strict";
const el=(name,props,...kids)=>{const e=Object.assign(document.createElement(name),props||{});e.append(...kids);return e};
const main=document.getElementById("main"),search=document.getElementById("search");
const table=(head,rows)=>el("table",{},el("tr",{},...head.map(h=>el("th",{},h))),...rows.map(r=>el("tr",{},...r.map(c=>el("td",{},c)))));
let api;
const resolve=(s,depth=0)=>{
  if(s&&s.$ref){if(depth>4)return{};s=api.components.schemas[s.$ref.split("/").pop()]||{}}
  if(!s||typeof s!=="object")return s;
  if(Array.isArray(s))return s.map(x=>resolve(x,depth+1));
  return Object.fromEntries(Object.entries(s).map(([k,v])=>[k,resolve(v,depth+1)]));
};
const schemas=content=>Object.entries(content||{}).map(([type,media])=>el("div",{},el("code",{},type),media.schema?el("pre",{},JSON.stringify(resolve(media.schema),null,1)):""));
const operation=(path,method,op)=>{
  const body=el("div",{className:"body"});
  if(op.parameters&&op.parameters.length)body.append(el("h4",{},"Parameters"),table(["name","in","description"],op.parameters.map(p=>[el("code",{},p.name),p.in,p.description||""])));
  if(op.requestBody)body.append(el("h4",{},"Request"),...schemas(op.requestBody.content));
  body.append(el("h4",{},"Responses"));
  for(const [status,r] of Object.entries(op.responses))body.append(el("p",{},el("code",{},status)," ",r.description||""),...(status==="default"?[]:schemas(r.content)));
  const d=el("details",{className:method,id:op.operationId},el("summary",{},el("b",{},method.toUpperCase()),el("code",{},path),el("span",{},op.summary||"")),body);
  d.dataset.text=(path+" "+op.operationId+" "+(op.summary||"")).toLowerCase();
  return d;
};
const filter=()=>{
  const words=search.value.toLowerCase().split(/\s+/);
  for(const d of main.querySelectorAll("details"))d.hidden=!words.every(w=>d.dataset.text.includes(w));
  for(const s of main.querySelectorAll("section"))s.hidden=![...s.querySelectorAll("details")].some(d=>!d.hidden);
};
const render=doc=>{
  api=doc;document.getElementById("title").textContent=doc.info.title+" "+doc.info.version;
  document.getElementById("about").textContent=doc.info.description||"";
  const groups=new Map();
  for(const [path,item] of Object.entries(doc.paths))for(const [method,op] of Object.entries(item)){
    const tag=(op.tags||["other"])[0];
    if(!groups.has(tag))groups.set(tag,el("section",{},el("h2",{},tag)));
    groups.get(tag).append(operation(path,method,op));
  }
  main.replaceChildren(...groups.values());
  search.addEventListener("input",filter);
  const target=location.hash&&document.getElementById(location.hash.slice(1));
  if(target){target.open=true;target.scrollIntoView()}
};
render(JSON.parse(document.getElementById("document").textContent));
)js";

std::string hash_source(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha256(), nullptr);
  return "'sha256-" + base64_encode(std::string(digest.begin(), digest.end())) + "'";
}

// Returns the document in a form that cannot end the element that contains it.
std::string for_script_element(const json::Raw& document) {
  std::string text;
  for (const char c : document.text()) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '&')
      escaped += "&amp;";
    else
      escaped += c;
  }
  return escaped;
}

void add_code(std::string& table, std::string_view code, const std::string& status, std::string_view remedy) {
  table.append("<tr id=\"").append(code).append("\"><td><code>").append(code).append("</code></td><td>");
  table.append(status).append("</td><td>").append(escape_html(remedy)).append("</td></tr>");
}

// Returns the table to whose rows the `type` of a problem document refers.
std::string table_of_codes() {
  std::string table =
      "<h2 id=\"codes\">Codes of problems</h2><table><tr><th>code</th><th>status</th><th>remedy</th></tr>";
  for (const ProblemCode& code : problem_codes())
    add_code(table, code.code, std::to_string(code.status), code.remedy);
  for (const FailureCode& failure : failure_codes()) add_code(table, failure.code, "", failure.remedy);
  return table + "</table>";
}

std::string build_page(const json::Raw& openapi) {
  std::string page =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fairlead admin API</title>"
      "<meta name=\"viewport\" content=\"width=device-width\"><style>";
  page.append(kStyle).append(
      "</style></head><body><h1 id=\"title\">Fairlead admin API</h1><p id=\"about\"></p>"
      "<p>The document: <a href=\"/openapi.json\">/openapi.json</a></p>"
      "<input id=\"search\" type=\"search\" placeholder=\"Search operations\" aria-label=\"Search "
      "operations\">"
      "<main id=\"main\">Loading…</main>");
  page.append(table_of_codes()).append("<script type=\"application/json\" id=\"document\">");
  page.append(for_script_element(openapi))
      .append("</script><script>")
      .append(kScript)
      .append("</script></body></html>\n");
  return page;
}

}  // namespace

http::Response docs_page(const json::Raw& openapi) {
  static const std::string policy =
      "default-src 'none'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; style-src " +
      hash_source(kStyle) + "; script-src " + hash_source(kScript);
  http::Response response(200);
  response.headers.add("Content-Type", "text/html; charset=utf-8");
  response.headers.add("Content-Security-Policy", policy);
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Referrer-Policy", "no-referrer");
  response.body.push_back(Bytes::adopt(build_page(openapi)));
  return response;
}

}  // namespace fairlead::admin
