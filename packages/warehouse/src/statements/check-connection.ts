import type { Warehouse } from '../client.js';
import { observed } from '../observation.js';

/** Asks the server with a statement, so that credentials count too. @throws whatever keeps it from answering */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  await observed(warehouse, 'check_connection', async () => {
    const answer = await warehouse.ping({ select: true });
    if (!answer.success) throw answer.error;
  });
}
