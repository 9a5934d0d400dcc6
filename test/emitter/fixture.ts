/** A collector that a test controls, and emitters that send to it: new ones for each test of a file. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach } from '@jest/globals';
import type { UsageEventInput } from '@meterline/catalog';
import { type Emitter, type EmitterOptions, type EventToRecord, openEmitter, type Problem } from '@meterline/emitter';
import { listening } from '../harness/listening.js';

export const USAGE: EventToRecord = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
};
const { usage: _, ...OF_AGENT } = USAGE;
export const SANDBOX = {
  ...OF_AGENT,
  resourceType: 'sandbox',
  billingDimension: 'sandbox_compute_runtime_gbs',
  gb: 4,
} as const;

export interface Received {
  readonly path: string;
  readonly key: string | undefined;
  readonly encoding: string | undefined;
  readonly events: readonly UsageEventInput[];
  readonly atMs: number;
}

export interface TestResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text that is sent as it is. */
  readonly body: unknown;
}

/** What the collector answers: the events for which there is a reason are rejected. */
export function receipt(
  events: readonly UsageEventInput[],
  isRejected: (event: UsageEventInput) => boolean = () => false,
  rejection = { reason: 'no_price', message: 'there is no price …' },
): TestResponse {
  const results = events.flatMap((event, index) =>
    isRejected(event) ? [{ index, status: 'rejected', ...rejection }] : [],
  );
  const accepted = events.length - results.length;
  return { status: accepted > 0 ? 202 : 400, body: { accepted, rejected: results.length, results } };
}

/** An HTTP server that responds as the collector does, or as what stands in front of it, and remembers what it was sent. */
export class TestCollector {
  readonly received: Received[] = [];
  /** The response to the next requests. */
  respond: (request: Received) => TestResponse | Promise<TestResponse> = ({ events }) => receipt(events);

  private constructor(
    readonly server: Server,
    readonly url: string,
  ) {
    server.on('request', async (request, response) => {
      const got = await read(request);
      this.received.push(got);
      const { status, headers, body } = await this.respond(got);
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  }

  static async start(): Promise<TestCollector> {
    const server = createServer();
    return new TestCollector(server, await listening(server));
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

async function read(request: IncomingMessage): Promise<Received> {
  const { authorization, 'content-encoding': encoding } = request.headers;
  const body = Buffer.concat(await request.toArray());
  const events = JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body));
  return { path: request.url ?? '', key: authorization, encoding, events, atMs: performance.now() };
}

/** What the test that runs has. */
interface Fixture {
  collector: TestCollector;
  /** What the emitters have told. */
  problems: Problem[];
}

/** @returns the fixture, new for each test, and what opens an emitter that is closed after the test */
export function useEmitters() {
  const fixture = {} as Fixture;
  const emitters: Emitter[] = [];
  beforeEach(async () => {
    fixture.collector = await TestCollector.start();
    fixture.problems = [];
  });
  afterEach(async () => {
    for (const emitter of emitters.splice(0)) await emitter.close({ timeoutMs: 0 });
    fixture.collector.stop();
  });
  const open = async (options: Partial<EmitterOptions> = {}) => {
    const { problems, collector } = fixture;
    const onProblem = (problem: Problem) => problems.push(problem);
    const emitter = await openEmitter({ url: collector.url, apiKey: 'mlk_secret', batchMs: 10, onProblem, ...options });
    emitters.push(emitter);
    return emitter;
  };
  return { fixture, open };
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(1);
}
