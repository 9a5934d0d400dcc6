import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { readRows, type Statement } from '../statement.js';

const idRow = z.object({ id: z.guid() });

export const DATABASE_ID_STATEMENT: Statement = {
  name: 'read_database_id',
  query: 'SELECT toString(uuid) AS id FROM system.databases WHERE name = currentDatabase()',
  query_params: {},
};

/** What tells this database from every other, also from one of the same name and address that was made anew. */
export async function readDatabaseId(warehouse: Warehouse): Promise<string> {
  const [row] = await readRows(warehouse, DATABASE_ID_STATEMENT, idRow);
  if (!row) throw new Error('the database that is in use does not exist');
  return row.id;
}
