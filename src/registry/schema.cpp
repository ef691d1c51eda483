#include "registry/schema.hpp"

namespace fairlead::registry {

// A document is the JSON form of a row. Columns beside it exist for unique keys, queries and operators.
// `name_key` is the name in lower case: names must differ in more than case. Rows of `changes` say which rows
// each revision has changed.
std::vector<sql::Migration> migrations() {
  return {
      {1,
       "registry",
       {
           "create table registry_revision (id bigint primary key check (id = 1), revision bigint not null)",
           "insert into registry_revision (id, revision) values (1, 0)",
           "create table changes (revision bigint not null, kind text not null, row_id text not null, "
           "primary key (revision, kind, row_id))",
           "create table users (id text primary key, name text not null, name_key text not null unique, "
           "role text not null, enabled bigint not null, document text not null, version bigint not null, "
           "created_at bigint not null, updated_at bigint not null)",
           "create table user_groups (id text primary key, name text not null, name_key text not null "
           "unique, document text not null, version bigint not null, created_at bigint not null, "
           "updated_at bigint not null)",
           "create table tokens (id text primary key, name text not null, user_id text not null references "
           "users (id), sha256 text not null unique, document text not null, version bigint not null, "
           "created_at bigint not null, expires_at bigint, revoked_at bigint, last_used_at bigint)",
           "create index tokens_user on tokens (user_id)",
           "create table servers (id text primary key, name text not null, name_key text not null unique, "
           "owner text references users (id), visibility text not null, transport text not null, enabled "
           "bigint not null, document text not null, version bigint not null, created_at bigint not null, "
           "updated_at bigint not null)",
           "create index servers_owner on servers (owner)",
           "create table endpoints (id text primary key, name text not null, name_key text not null unique, "
           "enabled bigint not null, document text not null, version bigint not null, created_at bigint not "
           "null, updated_at bigint not null)",
           "create table server_lists (server_id text primary key references servers (id) on delete "
           "cascade, document text not null, fetched_at bigint not null)",
           "create table drift (id text primary key, server_id text not null references servers (id) on "
           "delete cascade, kind text not null, name text not null, status text not null, detected_at "
           "bigint not null, document text not null)",
           "create index drift_server on drift (server_id)",
           "create table config_definitions (full_key text primary key, document text not null)",
           "create table config_values (full_key text primary key, value text not null, updated_at bigint "
           "not null)",
           "create table responses (actor text not null, idempotency_key text not null, request_sha256 text "
           "not null, status bigint not null, location text not null, etag text not null, body text not "
           "null, created_at bigint not null, primary key (actor, idempotency_key))",
           "create index responses_created on responses (created_at)",
       }},
      {2,
       "secrets",
       {
           "create table secret_keys (id text primary key, key_id text not null, document text not null, "
           "created_at bigint not null)",
           "create table secrets (id text primary key, scope_key text not null unique, name text not null, "
           "server_id text references servers (id) on delete cascade, user_id text references users (id) on "
           "delete cascade, data_key_id text not null references secret_keys (id), bytes bigint not null, "
           "document text not null, version bigint not null, created_at bigint not null, updated_at bigint "
           "not null)",
           "create index secrets_server on secrets (server_id)",
           "create index secrets_user on secrets (user_id)",
       }}};
}

}  // namespace fairlead::registry
