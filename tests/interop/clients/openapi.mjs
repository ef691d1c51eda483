// openapi.mjs FILE: validates an OpenAPI document with two public validators, and prints the problems as JSON.
import { readFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const problems = [];
const result = await new Validator().validate(structuredClone(document));
if (!result.valid) problems.push({ validator: "openapi-schema-validator", errors: result.errors });
try {
  const parsed = await SwaggerParser.validate(structuredClone(document), { resolve: { external: false } });
  if (!parsed.openapi.startsWith("3.1.")) problems.push({ validator: "version", errors: parsed.openapi });
} catch (error) {
  problems.push({ validator: "swagger-parser", errors: error.details ?? error.message });
}
console.log(JSON.stringify(problems));
