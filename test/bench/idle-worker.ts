/** A BullMQ worker that does nothing, to measure the queue alone. Arguments: Redis URL, queue prefix, concurrency. */
import { QUEUE_NAME } from '@meterline/catalog';
import { Worker } from 'bullmq';

const [url = '', prefix = '', concurrency] = process.argv.slice(2);
const worker = new Worker(QUEUE_NAME, async () => {}, {
  connection: { url, maxRetriesPerRequest: null },
  prefix,
  concurrency: Number(concurrency),
  removeOnComplete: { count: 20 },
});
process.once('SIGTERM', () => worker.close());
// The process that started this one is gone.
process.once('disconnect', () => process.exit(1));
process.channel?.unref();
