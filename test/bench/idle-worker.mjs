/** A BullMQ worker that does nothing: what the queue alone can do. Arguments: Redis URL, queue prefix, concurrency. */
import { Worker } from 'bullmq';

const [url, prefix, concurrency] = process.argv.slice(2);
const worker = new Worker('usage-events', async () => {}, {
  connection: { url, maxRetriesPerRequest: null },
  prefix,
  concurrency: Number(concurrency),
  removeOnComplete: { count: 1000 },
});
process.once('SIGTERM', () => worker.close());
