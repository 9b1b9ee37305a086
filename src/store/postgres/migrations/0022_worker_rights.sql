-- A worker's role may have no right to make tables: partitions are attached with the owner's rights, by
-- whoever was granted this function. Before, nobody but the owner could.
alter function millrace.attach_history(smallint, date, int) security definer;
alter function millrace.attach_history(smallint, date, int) set search_path = pg_catalog, pg_temp;
revoke execute on function millrace.attach_history(smallint, date, int) from public;
