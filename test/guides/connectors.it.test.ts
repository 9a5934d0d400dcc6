/**
 * The requests that the configurations of the guide make, with their headers, ids and bodies, and what the configuration does with the responses.
 * Redpanda Connect and Vector themselves are not run.
 */
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { eventIdOf } from '@meterline/collector';
import { parse as parseYaml } from 'yaml';
import { type CollectorFixture, event, eventsResponse, startCollectorFixture } from '../harness/collector.js';

const GUIDE = readFileSync(new URL('../../docs/guides/connectors.md', import.meta.url), 'utf8');
const blocks = [...GUIDE.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => parseYaml(text));

const [{ input, pipeline }] = blocks;
const { batching, inputs } = input.broker;
const [idMapping] = inputs[0].processors;
const [{ split }, , , { branch }] = pipeline.processors;
const request = branch.processors[0].http;
const { meterline: vector } = blocks.at(-1).sinks;

let fixture: CollectorFixture;
let account: string;
let key: string;
beforeAll(async () => {
  fixture = await startCollectorFixture();
  ({ account, key } = await fixture.account());
});
afterEach(() => fixture.takeJobs());
afterAll(() => fixture.close());

const filled = (text: string) => {
  const values: Readonly<Record<string, string>> = {
    COLLECTOR_URL: fixture.service.url,
    METERLINE_ACCOUNT: account,
    METERLINE_EMITTER_KEY: key,
  };
  return text.replace(/\$\{(.*?)\}/g, (whole, name: string) => values[name] ?? whole);
};

/** As the first mapping makes it of the record at an offset of Kafka. */
function withId(record: Record<string, unknown>, offset: number): Record<string, unknown> {
  const format = /root\.eventId = "(.*?)"\.format\(@kafka_topic, @kafka_partition, @kafka_offset\)/.exec(
    idMapping.mapping,
  );
  const place = ['usage', 0, offset];
  return { ...record, eventId: format?.[1]?.replace(/%v/g, () => String(place.shift())) };
}

async function post(url: string, headers: Readonly<Record<string, string>>, body: unknown) {
  const response = await fetch(filled(url), {
    method: 'POST',
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)])),
    body: JSON.stringify(body),
  });
  return { status: response.status, body: eventsResponse.parse(await response.json()) };
}
/** A batch: archived, put into `events`, and sent. */
const send = (events: readonly unknown[]) => post(request.url, request.headers, { events });

const { eventId: _, ...record } = event();

it('the configurations have the steps that are played here, and no others', () => {
  const [text, number, object] = [expect.any(String), expect.any(Number), expect.any(Object)];
  const http = { url: text, verb: 'POST', headers: object, timeout: text, max_retry_backoff: text };
  const responses = { backoff_on: [429, 503], successful_on: [400] };
  const result_map = 'root.rejections = this.results.filter(result -> result.status == "rejected")';
  expect(blocks[0]).toEqual({
    input: {
      broker: {
        inputs: [{ redpanda: object, processors: [{ mapping: text }] }],
        batching: { count: number, byte_size: number, period: text },
      },
    },
    pipeline: {
      processors: [
        { split: { size: number } },
        { archive: { format: 'json_array' } },
        { mapping: 'root.events = this' },
        { branch: { processors: [{ http: { ...http, ...responses } }], result_map } },
        { mapping: text },
      ],
    },
    output: { reject_errored: { file: { path: 'rejected.jsonl' } } },
  });
  expect(vector).toMatchObject({ auth: { strategy: 'bearer', token: text }, encoding: { codec: 'json' } });
  expect(vector.batch).toEqual({ max_events: number, max_bytes: number });
});

it('a batch of Kafka is accepted, and has the same ids when it is replayed', async () => {
  const batch = [withId(record, 41), withId(record, 42)];
  for (let replay = 0; replay < 2; replay += 1) {
    expect(await send(batch)).toMatchObject({ status: 202, body: { accepted: 2, rejected: 0 } });
  }
  const ids = (await fixture.takeJobs()).flat().map(({ eventId }) => eventId);
  const expected = ['kafka/usage/0/41', 'kafka/usage/0/42'].map((id) => eventIdOf(account, id));
  expect(ids).toEqual([...expected, ...expected]);
});

it('a record that breaks a rule is found by its place in the response, and the others are accepted', async () => {
  const { status, body } = await send([withId(record, 1), withId({ malformed: '{' }, 2)]);
  const rejected = body.results.filter(({ status: each }) => each === 'rejected');
  expect([status, body.accepted, rejected]).toMatchObject([202, 1, [{ index: 1, reason: 'missing_field' }]]);
});

it('a batch of which no record is accepted is 400 with results, which counts as a response', async () => {
  const { status, body } = await send([withId({ ...record, usage: -1 }, 3)]);
  expect([status, body.results]).toMatchObject([400, [{ index: 0, reason: 'invalid_usage' }]]);
  expect(request.successful_on).toEqual([status]);
});

it('a batch is no larger than the collector takes', () => {
  // A batch may grow by another before it is sent.
  expect(batching.count + split.size).toBeLessThanOrEqual(5_000);
  expect(2 * batching.byte_size).toBeLessThanOrEqual(5 * 1024 * 1024);
  expect(vector.batch.max_events).toBeLessThanOrEqual(5_000);
  expect(vector.batch.max_bytes).toBeLessThanOrEqual(5_000_000);
});

it('a batch of Vector is an array, which is accepted', async () => {
  const headers = { Authorization: `Bearer ${vector.auth.token}`, 'Content-Type': 'application/json' };
  expect(await post(vector.uri, headers, [withId(record, 4)])).toMatchObject({ status: 202, body: { accepted: 1 } });
});
