/**
 * The same events into one ClickHouse and into two shards of it, and questions of one account, which is on one shard, in turn. All
 * processes share the machine's cores, so what shows is what each of them has to do, not what two machines would reach.
 */
import { MS_PER_HOUR } from '@meterline/catalog';
import { CLUSTER } from '@meterline/local-stack';
import { openShards, type Shards, sealNext } from '@meterline/warehouse';
import { NO_LIMITS, type ServiceEnvironment } from '../services.js';
import { databaseVariables } from '../stack.js';
import type { Bench } from './bench.js';
import { askApi } from './dashboard.js';
import { type Figure, median } from './figure.js';
import { HttpClient } from './http-client.js';
import { measureInTurn } from './measure.js';
import { ProcessorTimes } from './processor-times.js';
import type { Question } from './questions.js';
import type { Site } from './site.js';
import { drainRate } from './usage-queue.js';

const DATABASE = 'shards';
const EVENTS_PER_JOB = 500;
const JOBS = 200;
const QUESTIONS_PER_RUN = 20;

interface Form {
  readonly name: string;
  readonly env: ServiceEnvironment;
  /** Its processes of ClickHouse. */
  readonly engines: Readonly<Record<string, number>>;
  readonly shards: Shards;
}

export const shards: Bench = {
  name: 'shards',
  async run({ site }) {
    const [one, two] = [await oneServer(site), await twoShards(site)];
    try {
      const ingested = await ingest(site, one, two);
      const open = await ask(site, one, two, 'its open hour');
      for (const { all } of [one.shards, two.shards]) {
        for (const shard of all) while (await sealNext(shard, Date.now() + MS_PER_HOUR));
      }
      return [...ingested, ...open, ...(await ask(site, one, two, 'the same, sealed'))];
    } finally {
      await Promise.all([one, two].map((form) => form.shards.close()));
    }
  },
};

async function oneServer(site: Site): Promise<Form> {
  await site.warehouse(DATABASE);
  const { url, user, password, pid } = site.clickhouse;
  const options = { url, user, password, database: DATABASE, application: 'meterline-bench' };
  return {
    name: 'one server',
    env: { ...databaseVariables(options), QUEUE_PREFIX: 'one' },
    engines: { ClickHouse: pid },
    shards: await openShards(options),
  };
}

async function twoShards(site: Site): Promise<Form> {
  const servers = await site.startShards(2);
  const [{ user, password } = { user: '', password: '' }] = servers;
  const url = servers.map((server) => server.url).join(',');
  const cluster = { name: CLUSTER, insertQuorum: undefined };
  const options = { url, user, password, cluster, database: DATABASE, application: 'meterline-bench' };
  // The worker makes the schema.
  const env = { ...databaseVariables(options), QUEUE_PREFIX: 'two' };
  await site.withIngest(env, async () => undefined);
  return {
    name: 'two shards',
    env,
    engines: Object.fromEntries(servers.map(({ pid }, index) => [`shard ${index + 1}`, pid])),
    shards: await openShards(options),
  };
}

async function ingest(site: Site, one: Form, two: Form): Promise<Figure[]> {
  const withWorkers = <T>(work: (workers: readonly number[]) => Promise<T>) =>
    site.withIngest(one.env, (first) => site.withIngest(two.env, (second) => work([first.pid, second.pid])));
  return withWorkers(async (workers) => {
    const measured = [one, two].map(({ env, engines }, index) => {
      const queue = site.queue(env.QUEUE_PREFIX ?? '');
      const times = new ProcessorTimes({ 'the worker': workers[index] ?? 0, Redis: site.redisPid, ...engines });
      return { times, run: async () => EVENTS_PER_JOB * (await drainRate(queue, JOBS, EVENTS_PER_JOB, times)) };
    });
    return inTurn(one, two, measured, {
      what: 'jobs of 500 events, queue to durable',
      unit: 'events/s',
      of: 'an event',
    });
  });
}

/** Of an account that has two of five events. */
async function ask(site: Site, one: Form, two: Form, title: string): Promise<Figure[]> {
  const hour = Math.floor(Date.now() / MS_PER_HOUR) * MS_PER_HOUR;
  const question: Question = {
    title,
    window: { startTime: hour - MS_PER_HOUR, endTime: hour + MS_PER_HOUR },
    resolution: 'hourly',
    groupBy: ['workspace'],
    hasPages: false,
  };
  const http = new HttpClient();
  const env = ({ env }: Form) => ({ ...env, ...NO_LIMITS });
  const measured = async (form: Form, { pid, url }: { readonly pid: number; readonly url: string }) => {
    const api = await askApi(site, url, http);
    const times = new ProcessorTimes({ 'the query service': pid, ...form.engines });
    const run = async () => {
      const stop = times.start(QUESTIONS_PER_RUN);
      const asked: number[] = [];
      for (let n = 0; n < QUESTIONS_PER_RUN; n += 1) asked.push(await api(question));
      stop();
      return median(asked);
    };
    return { times, run };
  };
  const asking = (first: Parameters<typeof measured>[1]) =>
    site.withQuery(
      DATABASE,
      async (second) =>
        inTurn(one, two, [await measured(one, first), await measured(two, second)], {
          what: `by workspace, hourly, one account: ${title}`,
          unit: 'ms',
          of: `a question: ${title}`,
        }),
      env(two),
    );
  try {
    return await site.withQuery(DATABASE, asking, env(one));
  } finally {
    http.close();
  }
}

interface Measured {
  readonly times: ProcessorTimes;
  readonly run: () => Promise<number>;
}

async function inTurn(
  one: Form,
  two: Form,
  [first, second]: readonly Measured[],
  { what, unit, of }: Pick<Figure, 'what' | 'unit'> & { readonly of: string },
): Promise<Figure[]> {
  if (!first || !second) throw new RangeError('two forms are compared');
  const [ofOne, ofTwo] = await measureInTurn(first.run, second.run);
  return [
    {
      bench: 'shards',
      what: `${what}, ${two.name}`,
      value: median(ofTwo),
      unit,
      runs: ofTwo,
      beside: [
        { what: one.name, value: median(ofOne), unit },
        { what: 'two of one', value: median(ofTwo) / median(ofOne), unit: '×' },
      ],
    },
    ...first.times.figures('shards', `${of}, ${one.name}`),
    ...second.times.figures('shards', `${of}, ${two.name}`),
  ];
}
