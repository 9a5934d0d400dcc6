/** SIGTERM while requests are being sent: what was answered with 202 is in the queue once, and no answer is cut. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type CollectorFixture, event, eventsAnswer, startCollectorFixture } from '../harness/collector.js';

const CLIENTS = 20;
const EVENTS = 5;
/** Before the signal. */
const WARM_UP = 100;

let site: CollectorFixture;
beforeAll(async () => {
  // Most requests wait to be written together with others when the signal comes.
  site = await startCollectorFixture({ METERLINE_CONSTANTS: JSON.stringify({ holdMs: 200 }) });
});
afterAll(() => site.close());

it('a collector that is stopped drops nothing that it has accepted, and ends with 0', async () => {
  const { account, key } = await site.account();
  const agent = new Agent({ keepAlive: true });
  const accepted: string[] = [];
  const cut: string[] = [];
  let warm = () => {};
  const isWarm = new Promise<void>((resolve) => {
    warm = resolve;
  });

  /** @returns undefined when nobody answers any more */
  const send = async (body: string): Promise<IncomingMessage | undefined> => {
    const sent = request(`${site.service.url}/v0/accounts/${account}/events`, {
      agent,
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    sent.end(body);
    try {
      const [response] = await once(sent, 'response');
      return response;
    } catch {
      return undefined;
    }
  };
  const client = async () => {
    for (;;) {
      const response = await send(JSON.stringify(Array.from({ length: EVENTS }, () => event())));
      if (!response) return;
      const body = await text(response).catch((error: unknown) => String(error));
      const answer = response.complete ? eventsAnswer.safeParse(JSON.parse(body)).data : undefined;
      if (response.statusCode !== 202 || answer?.accepted !== EVENTS) cut.push(`${response.statusCode} ${body}`);
      for (const { eventId } of answer?.results ?? []) if (eventId !== undefined) accepted.push(eventId);
      if (accepted.length >= WARM_UP * EVENTS) warm();
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  await isWarm;
  expect(await site.service.stop()).toBe(0);
  await clients;
  agent.destroy();

  expect(cut).toEqual([]);
  const queued = (await site.takeJobs()).flat().map(({ eventId }) => String(eventId));
  expect(new Set(queued).size).toBe(queued.length);
  expect(queued.sort()).toEqual(accepted.sort());
});
