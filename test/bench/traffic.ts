/**
 * The traffic of the benches: jobs for the queue, and HTTP clients that do as little as possible, because on two cores a client takes processor
 * time from the service that it measures.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { UsageEventInput } from '@meterline/catalog';
import type { Queue } from 'bullmq';
import { SeededRandom } from '../harness/seeded-random.js';
import { randomEvent } from '../harness/stream.js';
import { accountName } from './corpus.js';

const BULK = 500;
const POLL_MS = 10;

/** Each process has its own seed, because the ids of events must be unique. */
const random = new SeededRandom(`${process.pid} ${Date.now()}`);

/** An event of one of a hundred accounts within the last half hour, with a unique id. */
export function liveEvent(): UsageEventInput {
  const account = random.chance(0.4) ? 0 : random.integer(1, 99);
  return randomEvent(random, accountName(account), Date.now() - random.integer(0, 1_800_000));
}

export function liveEvents(count: number): UsageEventInput[] {
  return Array.from({ length: count }, () => liveEvent());
}

export function jobOf(events: number): { name: string; data: unknown } {
  return { name: 'usage', data: events === 1 ? liveEvent() : { events: liveEvents(events) } };
}

/**
 * Adds jobs to the paused queue, resumes it, and waits until the last job is acknowledged.
 * @param timed runs the measured part, from the resumption on
 * @returns events per second
 */
export async function drainRate(
  queue: Queue,
  jobs: number,
  eventsPerJob: number,
  timed: (work: () => Promise<void>) => Promise<void> = (work) => work(),
): Promise<number> {
  await queue.pause();
  const bulk = Math.max(1, Math.floor((BULK * 20) / (20 + eventsPerJob)));
  for (let done = 0; done < jobs; done += bulk) {
    await queue.addBulk(Array.from({ length: Math.min(bulk, jobs - done) }, () => jobOf(eventsPerJob)));
  }
  const started = performance.now();
  await timed(async () => {
    await queue.resume();
    while ((await queue.getJobCountByTypes('waiting', 'active')) > 0) await delay(POLL_MS);
  });
  return (1000 * jobs * eventsPerJob) / (performance.now() - started);
}

/** A pause between measurements. */
export const REST_MS = 500;

export async function emptied(queue: Queue): Promise<void> {
  await queue.obliterate({ force: true });
  await delay(REST_MS);
}

export interface Response {
  readonly status: number;
  readonly body: Buffer;
  /** From the call to the last byte of the response. */
  readonly ms: number;
}

/** Keeps its connections open. */
export class HttpClient {
  readonly #agent: Agent;

  constructor(connections = 1) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get(url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const sent = request(url, { headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const [status, ms] = [response.statusCode ?? 0, performance.now() - started];
          resolve({ status, ms, body: Buffer.concat(chunks) });
        });
      });
      sent.once('error', reject);
      sent.end();
    });
  }

  /** @throws Error that quotes the response, if its status is not 200 */
  async ok(url: string, key: string): Promise<Response> {
    const response = await this.get(url, { authorization: `Bearer ${key}` });
    if (response.status !== 200) throw new Error(`answered with ${response.status}: ${response.body}`);
    return response;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/**
 * Posts all bodies. Each client has one connection and sends its next request after each response, of which it parses only status and length.
 * @returns the milliseconds of each request, in the order of the responses
 * @throws Error that quotes a response other than 202
 */
export async function postAll(
  address: string,
  key: string,
  bodies: readonly string[],
  clients: number,
): Promise<number[]> {
  const { hostname, port, pathname } = new URL(address);
  const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const requests = bodies.map((body) => `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  const sockets = Array.from({ length: Math.min(clients, requests.length) }, () => connect(Number(port), hostname));
  const latencies: number[] = [];
  const work = async (socket: Socket) => {
    await once(socket.setNoDelay(), 'connect');
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      latencies.push(await exchange(socket, next));
    }
  };
  try {
    await Promise.all(sockets.map(work));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return latencies;
}

const HEAD_END = '\r\n\r\n';

/** @returns milliseconds */
function exchange(socket: Socket, sent: string): Promise<number> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    let text = '';
    const end = (error?: Error) => {
      socket.off('data', onData).off('error', end).off('close', onClose);
      if (error) reject(error);
      else resolve(performance.now() - started);
    };
    const onClose = () => end(new Error('the connection was closed before the response'));
    const onData = (piece: Buffer) => {
      text += piece.toString('latin1');
      const headEnd = text.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1]);
      if (!text.startsWith('HTTP/1.1 202 ') || Number.isNaN(length)) end(new Error(`answered with ${text}`));
      else if (text.length >= headEnd + HEAD_END.length + length) end();
    };
    socket.on('data', onData).on('error', end).on('close', onClose);
    socket.write(sent);
  });
}
