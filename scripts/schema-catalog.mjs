// The catalog queries behind schema-dump.mjs. $1 is the schema's name; sorting is left to the reader.

const inSchema = (column) => `${column} = (select oid from pg_namespace where nspname = $1)`;
const isOwn = (catalog, column) => `not exists (
  select from pg_depend d
  where d.classid = '${catalog}'::regclass and d.objid = ${column} and d.deptype = 'e')`;

const enums = `
  select t.oid::regtype::text as name, obj_description(t.oid, 'pg_type') as comment,
    array_agg(e.enumlabel::text order by e.enumsortorder) as labels
  from pg_type t join pg_enum e on e.enumtypid = t.oid
  where ${inSchema("t.typnamespace")}
  group by t.oid`;

const sequences = `
  select s.seqrelid::regclass::text as name, format_type(s.seqtypid, null) as type,
    s.seqstart::text as start, s.seqincrement::text as increment, s.seqcache::text as cache,
    s.seqmin::text as minimum, s.seqmax::text as maximum, s.seqcycle as cycles,
    obj_description(c.oid, 'pg_class') as comment,
    (select d.refobjid::regclass || '.' || quote_ident(a.attname)
      from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refobjsubid > 0
        and d.deptype in ('a', 'i')) as owner
  from pg_sequence s join pg_class c on c.oid = s.seqrelid
  where ${inSchema("c.relnamespace")}`;

const tables = `
  select c.oid::int8::text as id, c.oid::regclass::text as name, c.relpersistence as persistence,
    c.relrowsecurity as row_security, c.relforcerowsecurity as forced_row_security,
    coalesce(c.reloptions, '{}') || array(
      select 'toast.' || o from pg_class t, unnest(t.reloptions) o where t.oid = c.reltoastrelid
    ) as options,
    pg_get_partkeydef(c.oid) as partition_key, pg_get_expr(c.relpartbound, c.oid) as bound,
    i.inhparent::int8::text as parent_id, i.inhparent::regclass::text as parent,
    obj_description(c.oid, 'pg_class') as comment
  from pg_class c left join pg_inherits i on i.inhrelid = c.oid and c.relispartition
  where c.relkind in ('r', 'p') and ${inSchema("c.relnamespace")} and ${isOwn("pg_class", "c.oid")}`;

// A storage or statistics target is given only where it is not the default.
const columns = `
  select c.oid::int8::text as table_id, quote_ident(a.attname) as name,
    format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    pg_get_expr(d.adbin, d.adrelid) as default, a.attidentity as identity,
    a.attgenerated as generated, nullif(a.attcompression, '') as compression,
    case when a.attstorage <> t.typstorage then a.attstorage end as storage,
    case when a.attcollation <> t.typcollation then a.attcollation::regcollation::text end as collation,
    nullif(a.attstattarget, -1) as statistics, coalesce(a.attoptions, '{}') as options,
    col_description(c.oid, a.attnum) as comment
  from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where c.relkind in ('r', 'p', 'v', 'm') and ${inSchema("c.relnamespace")}
  order by c.oid, a.attnum`;

// PostgreSQL 18 lists NOT NULL among the constraints; here it stands with the column everywhere.
const constraints = `
  select conrelid::int8::text as table_id, quote_ident(conname) as name,
    pg_get_constraintdef(oid) as definition, obj_description(oid, 'pg_constraint') as comment
  from pg_constraint
  where contype <> 'n' and conparentid = 0 and conrelid <> 0 and ${inSchema("connamespace")}`;

const indexes = `
  select x.indrelid::int8::text as table_id, x.indexrelid::regclass::text as name,
    pg_get_indexdef(x.indexrelid) as definition, obj_description(x.indexrelid, 'pg_class') as comment
  from pg_index x join pg_class c on c.oid = x.indexrelid
  where not c.relispartition and ${inSchema("c.relnamespace")}
    and not exists (
      select from pg_constraint k where k.conindid = x.indexrelid and k.contype in ('p', 'u', 'x'))`;

const triggers = `
  select g.tgrelid::int8::text as table_id, quote_ident(g.tgname) as name,
    pg_get_triggerdef(g.oid) as definition, obj_description(g.oid, 'pg_trigger') as comment
  from pg_trigger g join pg_class c on c.oid = g.tgrelid
  where not g.tgisinternal and g.tgparentid = 0 and ${inSchema("c.relnamespace")}`;

const policies = `
  select p.polrelid::int8::text as table_id, quote_ident(p.polname) as name,
    p.polpermissive as permissive, p.polcmd as command,
    array(select quote_ident(rolname) from pg_roles where oid = any(p.polroles) order by 1) as roles,
    pg_get_expr(p.polqual, p.polrelid) as using, pg_get_expr(p.polwithcheck, p.polrelid) as checked
  from pg_policy p join pg_class c on c.oid = p.polrelid
  where ${inSchema("c.relnamespace")}`;

const statistics = `
  select stxrelid::int8::text as table_id, quote_ident(stxname) as name,
    pg_get_statisticsobjdef(oid) as definition, obj_description(oid, 'pg_statistic_ext') as comment
  from pg_statistic_ext where ${inSchema("stxnamespace")}`;

const functions = `
  select p.oid::regprocedure::text as name, p.prokind as kind,
    pg_get_functiondef(p.oid) as definition, obj_description(p.oid, 'pg_proc') as comment
  from pg_proc p
  where p.prokind in ('f', 'p') and ${inSchema("p.pronamespace")} and ${isOwn("pg_proc", "p.oid")}`;

// How a view's query reads back differs between versions, so that views show their columns only.
const views = `
  select c.oid::int8::text as id, c.oid::regclass::text as name, c.relkind = 'm' as materialized,
    obj_description(c.oid, 'pg_class') as comment
  from pg_class c where c.relkind in ('v', 'm') and ${inSchema("c.relnamespace")}`;

const queries = {
  enums,
  sequences,
  tables,
  columns,
  constraints,
  indexes,
  triggers,
  policies,
  statistics,
  functions,
  views,
};

/** Reads the whole catalog of one schema in one snapshot, with every name qualified. */
export async function readCatalog(client, schemaName) {
  const catalog = {};
  await client.query("begin transaction isolation level repeatable read read only");
  try {
    await client.query(
      "select set_config('search_path', '', true), set_config('TimeZone', 'UTC', true)",
    );
    for (const [name, text] of Object.entries(queries)) {
      catalog[name] = (await client.query(text, [schemaName])).rows;
    }
  } finally {
    await client.query("rollback");
  }
  return catalog;
}
