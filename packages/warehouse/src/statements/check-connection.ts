import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { observed } from '../observation.js';

const answer = z.tuple([z.object({ answer: z.literal(1) })]);

/**
 * Asks the server with a statement, so that credentials count too, and looks at the answer: many a server says 200 to
 * everything, and would swallow rows as well.
 * @throws whatever keeps it from answering
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  const rows = await observed(warehouse, 'check_connection', async () => {
    const result = await warehouse.query({ query: 'SELECT 1 AS answer', format: 'JSONEachRow' });
    return result.json();
  });
  const checked = answer.safeParse(rows);
  if (!checked.success) throw new Error('SELECT 1 did not return 1', { cause: checked.error });
}
