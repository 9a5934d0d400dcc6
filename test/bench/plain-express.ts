/** The plainest endpoint for events: Express, and a job for each request. No key, no limit, no check. Arguments: Redis, prefix, port. */
import express from 'express';
import { openQueue } from './usage-queue.js';

const [redisUrl = '', prefix = '', port = ''] = process.argv.slice(2);
const queue = openQueue(redisUrl, prefix);
const app = express();
app.use(express.json());
app.post('/v0/accounts/:account/events', async (request, response) => {
  await queue.add('usage', { events: request.body });
  response.status(202).json({ accepted: 1 });
});
const server = app.listen(Number(port), '127.0.0.1');
for (const end of ['SIGTERM', 'disconnect'] as const) {
  process.once(end, () => {
    server.close();
    server.closeAllConnections();
    queue.disconnect();
  });
}
process.channel?.unref();
