/** Makes requests from the OpenAPI document: every operation and parameter, with values that fit, that nearly fit, and hostile ones. */
import { z } from 'zod';
import type { SeededRandom } from '../faults/seeded-random.js';
import { type Caller, pickCaller } from './callers.js';
import { encoded, HOSTILE_TEXTS } from './hostile-text.js';
import type { RequestCase } from './http-client.js';

const parameterSchema = z.object({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean().default(false),
  allowEmptyValue: z.boolean().default(false),
  /** Of a list: its values come one by one, not with commas between them. */
  explode: z.boolean().default(true),
  schema: z.record(z.string(), z.unknown()),
});
const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ parameters: z.array(parameterSchema).default([]) }))),
});
type Parameter = z.output<typeof parameterSchema>;

export interface Operation {
  readonly path: string;
  readonly method: string;
  readonly parameters: readonly Parameter[];
}

export interface CallerCase extends RequestCase {
  readonly caller: Caller;
}

/** The operations of a document as it was served. @throws ZodError */
export function operationsOf(document: unknown): Operation[] {
  return Object.entries(documentSchema.parse(document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters }]) => ({ path, method: method.toUpperCase(), parameters })),
  );
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH', 'LINK'];
/** A body for a new key, of an account that no caller is an admin of. */
export const FOREIGN_KEY_BODY = '{"role":"member","account":"nobody"}';
const KEY_BODIES = [
  FOREIGN_KEY_BODY,
  '',
  '{}',
  '[]',
  'null',
  '{"role":"owner"}',
  '{"role":["admin"]}',
  '{"role":"member","expiresAt":null}',
  '{"role":"member","expiresAt":"1970-01-01T00:00:00Z"}',
  '{"role":"member","account":"a\\u0000b"}',
  '{"role":"member","__proto__":{"account":"acme"},"x":1}',
  '{"role":"member","role":"\\ud800"}',
  `{"role":${'['.repeat(8_000)}`,
];

const STRAY_PARAMETERS = [
  'label',
  'unit',
  'page',
  'Limit',
  'LIMIT',
  'limit[]',
  '__proto__',
  'toString',
  '',
  ' startTime',
];
const OTHER_PATHS = [
  '/',
  '/v0',
  '/v0/',
  '//',
  '/v0/accounts/',
  '/v0//accounts',
  '/V0/accounts',
  '/v0/accounts/acme',
  '/v0/./accounts',
  '/v0/accounts/../accounts',
  '/v0/%61ccounts',
  '/openapi.json',
  '/docs',
  '/metrics',
  '/.git/config',
  '/v0/accounts/acme/metrics/',
  '/v0/accounts/acme/metrics/enums',
  '/*',
  '/%2e%2e/%2e%2e/etc/passwd',
];
const ASSET_PATHS = [
  '/assets/.',
  '/assets/..',
  '/assets/%2e%2e%2fpackage.json',
  '/assets/%00',
  '/assets/x.js',
  '/assets/',
  '/assets/a%2fb',
  '/assets/%5c..',
];
const INSTANTS = [
  '1969-12-31T23:59:59.999Z',
  '1970-01-01T00:00:00Z',
  '1999-12-31T23:59:60Z',
  '2024-02-29T00:00:00Z',
  '2025-02-29T00:00:00Z',
  '2025-10-01T00:00:00Z',
  '2025-10-01T24:00:00Z',
  '2025-10-01t00:00:00z',
  '2025-10-01T00:00:00+00:00',
  '2025-10-01T00:00:00-00:00',
  '2025-10-01T00:00:00+01:00',
  '2025-10-01T00:00:00 00:00',
  '2025-10-01',
  '2025-10-01 00:00:00Z',
  '2025-10-01T00:00:00.123456789Z',
  '2025-10-01T00:00:00.1234567891Z',
  '2025-10-01T00:00:00.000999Z',
  '2025-10-07T23:59:59.999Z',
  '2025-10-08T00:00:00Z',
  '2025-10-08T00:00:00.001Z',
  '2025-12-30T00:00:00Z',
  '2025-12-30T00:00:00.001Z',
  '2026-10-01T00:00:00Z',
  '2026-10-01T00:00:00.001Z',
  '2100-12-31T23:59:59.999Z',
  '2101-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '+12025-10-01T00:00:00Z',
  '20251001T000000Z',
];
const HEADERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['accept', ['*/*', 'text/html', 'application/xml;q=0', 'garbage']],
  ['accept-encoding', ['identity', 'gzip', 'br;q=1.0, gzip;q=0', '*;q=0', 'garbage', 'gzip;q=NaN']],
  ['if-none-match', ['*', '"x"', 'garbage']],
  ['if-match', ['*', '"x"']],
  ['if-modified-since', ['Thu, 01 Jan 2099 00:00:00 GMT', 'garbage']],
  ['range', ['bytes=0-0', 'bytes=999999999-', 'bytes=5-1', 'garbage']],
  ['x-forwarded-for', ['203.0.113.9', 'garbage', '::1, '.repeat(200)]],
  ['x-forwarded-host', ['evil.example.com']],
  ['x-http-method-override', ['DELETE']],
  ['x-request-id', ['mine', 'two words', 'a'.repeat(129), '<script>']],
  ['x-svc-workspace', ['main', 'ünknown']],
  ['origin', ['https://evil.example.com', 'null']],
  ['cookie', ['a=b', ';;;;=']],
  ['content-type', ['application/json', 'garbage', 'multipart/form-data']],
  ['traceparent', ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'garbage', '00-0-0-0']],
  ['x-large', ['a'.repeat(8_000), 'é'.repeat(100)]],
];

export interface CaseSource {
  readonly operations: readonly Operation[];
  readonly callers: readonly Caller[];
  /** Cursors that the service has issued, for other questions or other callers. */
  readonly foreignCursors: readonly string[];
}

export function requestCase(random: SeededRandom, source: CaseSource): CallerCase {
  const caller = pickCaller(random, source.callers);
  const operation = random.pick(source.operations);
  const method = random.chance(0.9) ? operation.method : random.pick(METHODS);
  const query = queryOf(random, operation, source);
  const target = `${pathOf(random, operation)}${query === undefined ? '' : `?${query}`}`;
  const headers: Record<string, string | string[]> = { ...caller.headers };
  for (const { name, in: place, schema } of operation.parameters) {
    if (place === 'header' && random.chance(0.3)) headers[name] = headerValue(random, schema);
  }
  while (random.chance(0.3)) {
    const [name, values] = random.pick(HEADERS);
    headers[name] = random.pick(values);
  }
  if (random.chance(0.005)) headers['expect'] = '200-ok';
  return { caller, method, target, headers, body: bodyOf(random, headers, operation.method) };
}

function headerValue(random: SeededRandom, schema: Parameter['schema']): string | string[] {
  const known = z.array(z.string()).parse(schema['enum'] ?? ['x']);
  const value = random.pick(known);
  if (random.chance(0.7)) return value;
  return random.pick<string | string[]>(['', 'latest', `${value}-preview`, '2026-13-45', ` ${value} `, [value, value]]);
}

function bodyOf(random: SeededRandom, headers: Record<string, string | string[]>, method: string): Buffer | undefined {
  if (method === 'POST' && random.chance(0.8)) return sized(Buffer.from(random.pick(KEY_BODIES)), headers);
  if (!random.chance(0.03)) return undefined;
  if (random.chance(0.1)) headers['content-encoding'] = random.pick(['gzip', 'identity', 'garbage']);
  return sized(Buffer.alloc(random.pick([0, 1, 100, 16_384, 16_385, 60_000]), '{'), headers);
}

function sized(body: Buffer, headers: Record<string, string | string[]>): Buffer {
  // Node would send the body of a GET without its length, and the server would read it as the next request.
  headers['content-length'] = String(body.length);
  return body;
}

function pathOf(random: SeededRandom, { path, parameters }: Operation): string {
  if (random.chance(0.03)) return random.pick(OTHER_PATHS);
  if (random.chance(0.01)) return random.pick(ASSET_PATHS);
  const ofPath = parameters.filter((parameter) => parameter.in === 'path');
  return ofPath.reduce((filled, { name }) => {
    const value = random.chance(0.85)
      ? 'acme'
      : random.pick([...HOSTILE_TEXTS, 'ACME', 'globex', 'acme ', 'acme\u0000']);
    return filled.replace(`{${name}}`, () => encoded(random, value));
  }, path);
}

/** Undefined: without a question mark. */
function queryOf(random: SeededRandom, { parameters }: Operation, source: CaseSource): string | undefined {
  // Half of the requests have no more than one value that does not fit, or none would ever be answered.
  const isWild = random.chance(0.3);
  const known = parameters.filter((parameter) => parameter.in === 'query');
  const sent = known
    .filter(({ required }) => (required ? !random.chance(isWild ? 0.1 : 0.01) : random.chance(0.35)))
    .flatMap((parameter) =>
      Array.from({ length: timesSent(random, parameter) }, (): [string, string] => [
        parameter.name,
        parameterValue(random, parameter, isWild ? 0.4 : 0.05, source),
      ]),
    );
  if (random.chance(0.01)) sent.push(...manyNames(random.pick([98, 100, 101, 500])));
  if (isWild && random.chance(0.2)) sent.push([random.pick(STRAY_PARAMETERS), random.pick(HOSTILE_TEXTS)]);
  if (isWild && random.chance(0.1) && sent[0]) sent.push(sent[0]);
  if (random.chance(0.004)) sent.push(['resourceName', 'a'.repeat(random.pick([20_000, 24_500, 30_000]))]);
  if (sent.length === 0 && random.chance(0.9)) return undefined;
  const order = random.chance(0.5) ? sent : random.shuffled(sent);
  return order.map(([name, value]) => `${encoded(random, name)}=${encoded(random, value)}`).join('&');
}

function timesSent(random: SeededRandom, { schema, explode }: Parameter): number {
  return schema['type'] === 'array' && explode && random.chance(0.3) ? random.integer(2, 4) : 1;
}

function manyNames(count: number): [string, string][] {
  return Array.from({ length: count }, (_, n) => ['resourceName', `box-${n}`]);
}

function parameterValue(
  random: SeededRandom,
  { name, schema: described, explode }: Parameter,
  wildness: number,
  source: CaseSource,
): string {
  if (random.chance(wildness)) return random.pick(HOSTILE_TEXTS);
  const schema = described['type'] === 'array' && explode ? itemsOf(described) : described;
  if (name === 'startTime')
    return random.chance(0.7) ? random.pick(['2025-10-01T00:00:00Z', '2025-10-01T10:30:00Z']) : random.pick(INSTANTS);
  if (name === 'endTime')
    return random.chance(0.7)
      ? random.pick(['2025-10-02T00:00:00Z', '2025-10-07T12:00:00Z', '2025-11-01T00:00:00Z'])
      : random.pick(INSTANTS);
  if (name === 'cursor') return cursor(random, source.foreignCursors);
  if (schema['type'] === 'boolean') return random.pick(['true', 'false', 'true', 'false', 'True', '1', '']);
  if (schema['type'] === 'integer') return random.pick(['1', '2', '100', '101', '0', '007', '9'.repeat(400)]);
  if (schema['type'] === 'array') return list(random, schema);
  if (Array.isArray(schema['enum'])) {
    const word = String(random.pick(schema['enum']));
    return random.chance(0.95) ? word : random.pick([word.toUpperCase(), `${word} `, `${word},${word}`]);
  }
  return random.pick(['main', 'other', 'box', 'unknown', 'ünï', '名前', '😀']);
}

function itemsOf({ items }: Parameter['schema']): Parameter['schema'] {
  return z.record(z.string(), z.unknown()).parse(items);
}

function list(random: SeededRandom, { items }: Parameter['schema']): string {
  const { enum: names } = z.object({ enum: z.array(z.string()) }).parse(items);
  const picked = random.shuffled(names).slice(0, random.integer(1, random.chance(0.9) ? 3 : 5));
  if (random.chance(0.05)) picked.push(random.pick([...picked, '', ' ', 'WORKSPACE', '__proto__']));
  return picked.join(',');
}

/** Empty, made up, another's, or another's with a character changed. */
function cursor(random: SeededRandom, foreign: readonly string[]): string {
  if (foreign.length === 0 || random.chance(0.6))
    return random.pick(['', '', 'x', `${'A'.repeat(60)}.${'A'.repeat(43)}`]);
  const own = random.pick(foreign);
  const at = random.integer(0, own.length - 1);
  return random.chance(0.5) ? own : `${own.slice(0, at)}${random.pick(['A', 'B', '.', '=', ''])}${own.slice(at + 1)}`;
}
