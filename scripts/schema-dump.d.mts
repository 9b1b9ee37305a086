interface Queryable {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

export function dumpSchema(client: Queryable, schemaName: string): Promise<string>;
