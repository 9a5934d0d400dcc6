/** An HTTP server that responds as the collector does, or as what stands in front of it, and remembers what it was sent. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { UsageEventInput } from '@meterline/catalog';

export interface Received {
  readonly path: string | undefined;
  readonly key: string | undefined;
  readonly encoding: string | undefined;
  readonly events: readonly UsageEventInput[];
  readonly atMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text that is sent as it is. */
  readonly body: unknown;
}

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { authorization, 'content-encoding': encoding } = request.headers;
  const body = Buffer.concat(chunks);
  const events = JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body));
  return { path: request.url, key: authorization, encoding, events, atMs: performance.now() };
}

/** What the collector answers: the events for which there is a reason are rejected. */
export function receipt(
  events: readonly UsageEventInput[],
  refuse: (event: UsageEventInput) => boolean = () => false,
): Answer {
  const results = events.map((event, index) => {
    const { eventId } = event;
    if (!refuse(event)) return { index, eventId, status: 'accepted' };
    return { index, eventId, status: 'rejected', reason: 'no_price', message: 'there is no price …' };
  });
  const rejected = results.filter(({ status }) => status === 'rejected').length;
  const accepted = events.length - rejected;
  return { status: accepted > 0 ? 202 : 400, body: { accepted, rejected, results } };
}

/** Of one event. */
export const TOO_EARLY: Answer = {
  status: 400,
  body: {
    accepted: 0,
    rejected: 1,
    results: [{ index: 0, status: 'rejected', reason: 'timestamp_in_future', message: 'it is in the future' }],
  },
};

export class TestCollector {
  readonly server: Server;
  readonly url: string;
  readonly received: Received[] = [];
  /** The response to the next requests. */
  answer: (request: Received) => Answer | Promise<Answer> = ({ events }) => receipt(events);

  private constructor(server: Server) {
    this.server = server;
    const address = server.address();
    this.url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
    server.on('request', async (request, response) => {
      const got = await read(request);
      this.received.push(got);
      const { status, headers, body } = await this.answer(got);
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  }

  static async start(): Promise<TestCollector> {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return new TestCollector(server);
  }

  get events(): UsageEventInput[] {
    return this.received.flatMap(({ events }) => events);
  }

  get ids(): string[] {
    return this.events.map(({ eventId }) => eventId);
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
