/** Requests from the OpenAPI document: every operation and parameter, with values that fit, that nearly fit, and hostile ones. */
import * as fc from 'fast-check';
import { z } from 'zod';
import type { RawRequest } from '../contract/raw-http.js';
import { hostileText, mostly, oddInstant } from '../harness/event-arbitraries.js';

const parameterSchema = z.object({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean().default(false),
  /** Whether the values of a list come one by one, not with commas between them. */
  explode: z.boolean().default(true),
  schema: z.record(z.string(), z.unknown()),
});
const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ parameters: z.array(parameterSchema).default([]) }))),
});
type Parameter = z.output<typeof parameterSchema>;
type Pair = readonly [name: string, value: string];
type HeaderLine = readonly [name: string, value: string | string[]];

/** Who sends a request. The whole matrix is test/contract/authorisation. */
export interface Caller {
  readonly headers: RawRequest['headers'];
  /** The account of which the caller is an admin or a member; undefined for who is turned away. */
  readonly account?: string;
}

export interface CallerCase extends RawRequest {
  readonly caller: Caller;
}

const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'M-SEARCH', 'LINK');
const otherPath = fc.constantFrom(
  ...['/', '/v0', '/v0/', '//', '/v0/accounts/', '/v0//accounts', '/V0/accounts', '/v0/./accounts', '/v0/%61ccounts'],
  ...['/v0/accounts/acme', '/v0/accounts/../accounts', '/v0/accounts/acme/metrics/', '/v0/accounts/acme/metrics/enums'],
  ...'/openapi.json /docs /metrics /.git/config /* /%2e%2e/%2e%2e/etc/passwd /assets/. /assets/..'.split(' '),
  ...['/assets/%2e%2e%2fpackage.json', '/assets/%00', '/assets/x.js', '/assets/', '/assets/a%2fb', '/assets/%5c..'],
);
const header: fc.Arbitrary<HeaderLine> = fc.oneof(
  ...Object.entries({
    accept: ['*/*', 'text/html', 'application/xml;q=0', 'garbage'],
    'accept-encoding': ['identity', 'gzip', 'br;q=1.0, gzip;q=0', '*;q=0', 'garbage', 'gzip;q=NaN'],
    'if-none-match': ['*', '"x"', 'garbage'],
    'if-match': ['*', '"x"'],
    'if-modified-since': ['Thu, 01 Jan 2099 00:00:00 GMT', 'garbage'],
    range: ['bytes=0-0', 'bytes=999999999-', 'bytes=5-1', 'garbage'],
    'x-forwarded-for': ['203.0.113.9', 'garbage', '::1, '.repeat(200)],
    'x-forwarded-host': ['evil.example.com'],
    'x-http-method-override': ['DELETE'],
    'x-request-id': ['mine', 'two words', 'a'.repeat(129), '<script>'],
    'x-svc-workspace': ['main', 'ünknown'],
    origin: ['https://evil.example.com', 'null'],
    cookie: ['a=b', ';;;;='],
    'content-type': ['application/json', 'garbage', 'multipart/form-data'],
    traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'garbage', '00-0-0-0'],
    'x-large': ['a'.repeat(8_000), 'é'.repeat(100)],
  }).map(([name, values]) => fc.constantFrom(...values).map((value) => [name, value] as const)),
);
/** None creates a key: no caller is an admin of that account. */
const keyBody = fc.oneof(
  fc.constantFrom(
    '{"role":"member","account":"nobody"}',
    '',
    '{}',
    '[]',
    'null',
    '{"role":"owner"}',
    '{"role":["admin"]}',
  ),
  fc.constantFrom('{"role":"member","expiresAt":null}', '{"role":"member","expiresAt":"1970-01-01T00:00:00Z"}'),
  fc.constantFrom('{"role":"member","account":"a\\u0000b"}', '{"role":"member","role":"\\ud800"}'),
  fc.constantFrom('{"role":"member","__proto__":{"account":"acme"},"x":1}', `{"role":${'['.repeat(8_000)}`),
);
const anyBody = fc.constantFrom(0, 1, 100, 16_384, 16_385, 60_000).map((size) => '{'.repeat(size));

export interface CaseSource {
  /** The OpenAPI document as it was served. */
  readonly document: unknown;
  readonly callers: readonly [Caller, ...Caller[]];
  /** Cursors that the service has issued, for other queries or other callers. */
  readonly foreignCursors: readonly string[];
}

/** An admin asks in half of the cases, so that requests get past authentication. @throws ZodError */
export function requests({ document, callers, foreignCursors }: CaseSource): fc.Arbitrary<CallerCase> {
  const operations = Object.entries(documentSchema.parse(document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, { parameters }]) => ({ path, own: name.toUpperCase(), parameters })),
  );
  const cursor = mostly(3, fc.constant(''), cursors(foreignCursors));
  return fc.constantFrom(...operations).chain(({ path, own, parameters }) => {
    const body = own === 'POST' ? mostly(5, keyBody, fc.constant(undefined)) : fc.constant(undefined);
    return fc
      .record({
        caller: fc.oneof(fc.constant(callers[0]), fc.constantFrom(...callers)),
        method: mostly(10, fc.constant(own), method),
        path: mostly(30, pathOf(path, parameters), otherPath),
        // Most requests have no more than one value that does not fit, or none would ever be answered.
        query: mostly(4, queryOf(parameters, cursor, 20), queryOf(parameters, cursor, 2)),
        versions: fc.tuple(...parameters.filter((one) => one.in === 'header').map(versionOf)),
        headers: mostly<HeaderLine[]>(2, fc.constant([]), fc.array(header, { maxLength: 3 })),
        body: mostly(30, body, anyBody),
        encoding: mostly(10, fc.constant(undefined), fc.constantFrom('gzip', 'identity', 'garbage')),
        expects: mostly(200, fc.constant(false), fc.constant(true)),
      })
      .map((made) => {
        const content = made.body === undefined ? undefined : Buffer.from(made.body);
        const headers = {
          ...made.caller.headers,
          ...Object.fromEntries([...made.versions.flat(), ...made.headers]),
          // Node would send the body of a GET without its length, and the server would read it as the next request.
          ...(content && { 'content-length': String(content.length) }),
          ...(content && made.encoding !== undefined && { 'content-encoding': made.encoding }),
          ...(made.expects && { expect: '200-ok' }),
        };
        const target = made.query === '' ? made.path : `${made.path}?${made.query}`;
        return { caller: made.caller, method: made.method, target, headers, body: content };
      });
  });
}

function versionOf({ name, schema }: Parameter): fc.Arbitrary<HeaderLine[]> {
  const known = fc.constantFrom(...z.array(z.string()).parse(schema['enum'] ?? ['x']));
  const odd = known.chain((value) =>
    fc.constantFrom<string | string[]>('', 'latest', `${value}-preview`, '2026-13-45', ` ${value} `, [value, value]),
  );
  const line = mostly<string | string[]>(4, known, odd).map((value): HeaderLine[] => [[name, value]]);
  return mostly(3, fc.constant([]), line);
}

function pathOf(path: string, parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const value = mostly(7, fc.constant('acme'), fc.oneof(hostileText, fc.constantFrom('ACME', 'globex', 'acme\u0000')));
  const names = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
  return fc
    .tuple(...names.map(() => value.chain(encoded)))
    .map((values) => names.reduce((text, name, index) => text.replace(`{${name}}`, () => values[index] ?? ''), path));
}

/** Percent-encodes as clients do, or more or less than they do. The result may be no valid encoding. */
function encoded(text: string): fc.Arbitrary<string> {
  const usual = encodeURIComponent(text);
  const every = Buffer.from(text).reduce((all, byte) => `${all}%${byte.toString(16).padStart(2, '0')}`, '');
  const broken = fc.constantFrom('%', '%z', '%zz', '%ff', '%c0%80', '%ed%a0%80', '%f5%80%80%80', '%e2%82');
  const odd = fc.constantFrom(every, usual.replaceAll('%20', '+'), usual.toLowerCase());
  const wrong = broken.map((end) => usual + end);
  return mostly(7, fc.constant(usual), mostly(10, odd, wrong));
}

/** @param oddity one value in so many does not fit */
function queryOf(parameters: readonly Parameter[], cursor: fc.Arbitrary<string>, oddity: number) {
  const known = parameters.filter((one) => one.in === 'query');
  const sent = known.map((parameter): fc.Arbitrary<readonly Pair[]> => {
    const { name, required, schema, explode } = parameter;
    const value = mostly(oddity, valueFor(parameter, cursor), hostileText);
    const most = schema['type'] === 'array' && explode ? 3 : 1;
    const pairs = fc.array(
      value.map((text): Pair => [name, text]),
      { minLength: 1, maxLength: most },
    );
    const none = fc.constant<Pair[]>([]);
    return required ? mostly(oddity * 3, pairs, none) : mostly(3, none, pairs);
  });
  const many = fc.constantFrom(98, 100, 101, 500).map((times) => Array<Pair>(times).fill(['resourceName', 'box']));
  const numbered = many.map((pairs) => pairs.map(([name, box], n): Pair => [name, `${box}-${n}`]));
  const long = fc.constantFrom(20_000, 24_500, 30_000).map((size): Pair[] => [['resourceName', 'a'.repeat(size)]]);
  // A parameter that is unknown, or comes twice.
  const names = fc.constantFrom(...'label|unit|page|Limit|limit[]|limit|__proto__|toString|| startTime'.split('|'));
  const stray = fc.tuple(names, hostileText).map((pair): Pair[] => [pair]);
  const extra = mostly<readonly Pair[]>(20, fc.constant([]), fc.oneof(numbered, long, stray));
  return fc.tuple(fc.tuple(...sent), extra, fc.boolean()).chain(([lists, more, isReversed]) => {
    const pairs = [...lists.flat(), ...more];
    return joined(isReversed ? pairs.toReversed() : pairs);
  });
}

function joined(pairs: readonly Pair[]): fc.Arbitrary<string> {
  return fc
    .tuple(...pairs.map(([name, value]) => fc.tuple(encoded(name), encoded(value))))
    .map((texts) => texts.map(([name, value]) => `${name}=${value}`).join('&'));
}

function valueFor({ name, schema: described, explode }: Parameter, cursor: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const isOneByOne = described['type'] === 'array' && explode;
  const schema = isOneByOne ? z.record(z.string(), z.unknown()).parse(described['items']) : described;
  if (name === 'startTime')
    return mostly(4, fc.constantFrom('2025-10-01T00:00:00Z', '2025-10-01T10:30:00Z'), oddInstant);
  if (name === 'endTime') return mostly(4, END, oddInstant);
  if (name === 'cursor') return cursor;
  if (schema['type'] === 'boolean') return fc.constantFrom('true', 'false', 'true', 'false', 'True', '1', '');
  if (schema['type'] === 'integer') return fc.constantFrom('1', '2', '100', '101', '0', '007', '9'.repeat(400));
  if (schema['type'] === 'array') {
    const { enum: dimensions } = z.object({ enum: z.array(z.string()) }).parse(schema['items']);
    const few = fc.shuffledSubarray(dimensions, { minLength: 1, maxLength: 3 });
    return mostly(10, few, fc.shuffledSubarray(dimensions)).map((some) => some.join(','));
  }
  const words = schema['enum'] ?? schema['examples'];
  if (!Array.isArray(words)) return fc.constantFrom('main', 'other', 'box', 'unknown', 'ünï', '名前', '😀');
  const word = fc.constantFrom(...z.array(z.string()).parse(words));
  const odd = word.chain((text) => fc.constantFrom(text.toUpperCase(), `${text} `, `${text},${text}`));
  return mostly(20, word, odd);
}

/** Some where hours, days and weeks are no longer allowed. */
const END = fc.constantFrom(
  ...['2025-10-02T00:00:00Z', '2025-10-07T12:00:00Z', '2025-11-01T00:00:00Z', '2025-10-08T00:00:00Z'],
  ...['2025-10-08T00:00:00.001Z', '2025-12-30T00:00:00.001Z', '2026-10-01T00:00:00Z', '2026-10-01T00:00:00.001Z'],
);

/** Made up, another's, or another's with a character changed. */
function cursors(foreign: readonly string[]): fc.Arbitrary<string> {
  const madeUp = fc.constantFrom('x', `${'A'.repeat(60)}.${'A'.repeat(43)}`);
  if (foreign.length === 0) return madeUp;
  const changed = fc
    .tuple(fc.constantFrom(...foreign), fc.nat(), fc.constantFrom('A', 'B', '.', '=', ''))
    .map(([own, at, one]) => own.slice(0, at % own.length) + one + own.slice((at % own.length) + 1));
  return fc.oneof(madeUp, fc.constantFrom(...foreign), changed);
}
