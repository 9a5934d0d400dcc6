/** What a process asks a server before it trusts it. */
import { z } from 'zod';
import type { Statement, Warehouse } from './connection.js';

const CHECK: Statement = { name: 'check_connection', query: 'SELECT 1 AS answer', query_params: {} };

/**
 * Asks the server with a statement, so that credentials count too, and looks at the answer: many servers answer 200 to
 * everything, and would swallow rows as well.
 * @throws what keeps it from answering
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  try {
    const rows = await warehouse.read(CHECK, z.object({ answer: z.literal(1) }));
    if (rows.length === 1) return;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
    throw new Error('SELECT 1 did not return 1', { cause: error });
  }
  throw new Error('SELECT 1 did not return 1');
}

export const DATABASE_ID_STATEMENT: Statement = {
  name: 'read_database_id',
  query: 'SELECT toString(uuid) AS id FROM system.databases WHERE name = currentDatabase()',
  query_params: {},
};

/** Differs for every database, also for a new one with the name and address of an old one. */
export async function readDatabaseId(warehouse: Warehouse): Promise<string> {
  const [row] = await warehouse.read(DATABASE_ID_STATEMENT, z.object({ id: z.guid() }));
  if (!row) throw new Error('the database that is in use does not exist');
  return row.id;
}
