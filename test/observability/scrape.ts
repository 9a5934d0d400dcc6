/** Prometheus as far as the tests need it: asks a service's admin port and reads the response. */
import { z } from 'zod';
import type { ServiceProcess } from '../harness/services.js';

const started = z.object({ event: z.literal('started'), adminPort: z.int() });

/** @param service started with ADMIN_PORT */
export async function adminUrl(service: ServiceProcess): Promise<string> {
  const { adminPort } = started.parse(await service.entry(({ event }) => event === 'started'));
  return `http://127.0.0.1:${adminPort}`;
}

export interface Scrape {
  /** The value of a series, such as `meterline_outage{server="Redis"}`; undefined when there is none. */
  value(series: string): number | undefined;
  /** All of them. */
  readonly series: Iterable<string>;
  /** The names of all samples. */
  readonly names: ReadonlySet<string>;
}

const SAMPLE = /^(([a-z_:][a-z0-9_:]*)(?:\{.*\})?) (\S+)$/i;

/** @throws when the page is no well-formed response */
export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const samples = lines.map((line) => {
    const [, series = '', name = '', value = ''] = SAMPLE.exec(line) ?? [];
    if (name === '') throw new Error(`not a sample: ${line}`);
    return { series, name, value: Number(value) };
  });
  const values = new Map(samples.map(({ series, value }) => [series, value]));
  return {
    value: (series) => values.get(series),
    series: values.keys(),
    names: new Set(samples.map(({ name }) => name)),
  };
}
