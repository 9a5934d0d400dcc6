/** The bodies, list parameters and cursors of requests. */

import { createHash, createHmac } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { ACCOUNT_LIST_PARAMETERS, API_KEY_LIST_PARAMETERS, newAlertSchema, newApiKeySchema } from '@meterline/catalog';
import fc from 'fast-check';
import { z } from 'zod';
import { parseBody } from './body.js';
import { CursorCodec, parseListRequest } from './paging.js';

const KEY = { role: 'member' };
const ALERT = {
  ...{ name: 'Spend', period: 'month', measure: 'cost', amount: '100', thresholds: [50, 80, 100] },
  ...{ filters: {}, url: 'https://example.com/hooks' },
};

/** `at`: the members that the details name, in alphabetical order. `text`: a part of the message. */
type Row = readonly [body: unknown, at: string, text: string];

function expectRejected(schema: z.ZodObject, [body, at, text]: Row): void {
  const sent = Buffer.isBuffer(body) || body === undefined ? body : Buffer.from(JSON.stringify(body));
  const details = expect.objectContaining({
    ...{ status: 400, code: 'invalid_body', message: expect.stringContaining(text) },
    details: at.split(',').map((parameter) => expect.objectContaining({ parameter })),
  });
  expect(() => parseBody(sent, schema, KEY)).toThrow(details);
}

const OBJECT = 'The body must be a JSON object in UTF-8, such as {"role":"member"}.';

it.each<Row>([
  [undefined, 'body', OBJECT],
  ...['', 'role=member', '["member"]', 'null'].map((text): Row => [Buffer.from(text), 'body', OBJECT]),
  [Buffer.from('{"role":"member","account":"café"}', 'latin1'), 'body', OBJECT],
  [{}, 'role', 'role is missing; it is required.'],
  [{ role: 'owner' }, 'role', 'role must be one of admin, member, emitter (got "owner").'],
  [
    { role: 'operator' },
    'role',
    'emitter; create keys for all accounts with the command line, with access to Redis (got',
  ],
  [{ ...KEY, ttl: 1 }, 'ttl', '"ttl" is not a field; the fields are role, account, expiresAt.'],
  [{ ...KEY, expiresAt: '2026-01-01' }, 'expiresAt', 'expiresAt must be RFC 3339 in UTC'],
  [{ ...KEY, expiresAt: null }, 'expiresAt', 'expiresAt '],
  [{ ...KEY, account: '' }, 'account', 'account is missing; it must be 1 to 256 characters'],
  [{ role: 'x', expiresAt: 'x', ttl: 1 }, 'role,expiresAt,ttl', 'role must be one of'],
])('the body %j of a new key is rejected at %s: %s', (...row) => expectRejected(newApiKeySchema, row));

const alert = (change: object, at: string, text: string): Row => [{ ...ALERT, ...change }, at, text];
const ofFilters = (filters: object, at: string, text: string) => alert({ filters }, `filters${at}`, text);
const THRESHOLDS = 'must be at most 10 whole numbers from 1 to 1000, ascending';
const RECIPIENTS = 'must be 1 to 10 different e-mail addresses';

it.each<Row>([
  [{}, 'name,period,measure,amount', 'amount is missing'],
  alert({ colour: 'red' }, 'colour', '"colour" is not a field; the fields are name, period'),
  alert({ period: 'week', measure: 'money' }, 'period,measure', 'period must be one of day, month (got "week").'),
  ...['0', '0.000', '0125', '00.5', '-1', '1e3', 'x', ' 1', '1'.repeat(16), `0.${'1'.repeat(13)}`, 100, null].map(
    (amount) => alert({ amount }, 'amount', 'amount must be a decimal string above 0'),
  ),
  ...[[50, 50], [80, 50], Array.from({ length: 11 }, (_, n) => n + 1), 50].map((thresholds) =>
    alert({ thresholds }, 'thresholds', THRESHOLDS),
  ),
  ...[0, 1001, 1.5, '50'].map((percent) => alert({ thresholds: [percent] }, 'thresholds.0', THRESHOLDS)),
  alert({ forecast: [100, 90] }, 'forecast', THRESHOLDS),
  alert({ format: 'discord' }, 'format', 'format must be one of standard, slack, teams'),
  ...[
    [],
    ['a@example.com', 'a@example.com'],
    Array.from({ length: 11 }, (_, n) => `${n}@example.com`),
    'a@example.com',
  ].map((to) => alert({ to }, 'to', RECIPIENTS)),
  ...['billing', 'a@b', 'a@example.com\r\nBcc: b@example.com', 'A <a@example.com>', `a@${'x'.repeat(250)}.com`].map(
    (address) => alert({ to: [address] }, 'to.0', RECIPIENTS),
  ),
  ofFilters({ colour: ['red'] }, '', 'no members but workspace, resourceType'),
  ofFilters({ resourceType: ['vm'] }, '.resourceType.0', 'filters.resourceType.0 must be one of sandbox'),
  ofFilters({ workspace: 'main' }, '.workspace', 'must be an array'),
  ofFilters({ workspace: [] }, '.workspace', 'must have a value or be left out'),
  ofFilters({ workspace: ['a\u0000'] }, '.workspace.0', 'without control characters'),
  ...['ftp://example.com', 'https://a:b@example.com', 'example.com', 'https://example.com/\r\nhooks']
    .concat(`https://example.com/${'a'.repeat(2_048)}`)
    .map((url) => alert({ url }, 'url', 'url must be an https URL of at most 2048 characters')),
  alert({ url: '' }, 'url', 'url is missing; it must be an https URL of at most 2048 characters'),
  alert({ name: '' }, 'name', 'name is missing; it must be'),
])('the body %j of a new alert is rejected at %s: %s', (...row) => {
  expectRejected(newAlertSchema, row);
});

const SECRET = 'a secret of at least 32 characters';
const BINDING = ['metrics', 'caller', 'acme'];
const START = Date.parse('2025-10-01T00:00:00Z');

function codecAt(milliseconds: number, secret = SECRET): CursorCodec {
  return new CursorCodec(secret, () => new Date(milliseconds));
}

const anything = z.unknown();

it('the cursor codec returns the position of the cursor', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (position) => {
      const cursor = codecAt(START).issue(BINDING, position);
      expect(cursor).toMatch(/^[\w-]+\.[\w-]{43}$/);
      expect(codecAt(START).open(cursor, BINDING, z.array(z.string()))).toEqual(position);
    }),
  );
});

it('the cursor codec rejects every text that differs in one character', () => {
  const cursor = codecAt(START).issue(BINDING, ['box']);
  fc.assert(
    fc.property(fc.nat(cursor.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
      fc.pre(cursor[at] !== character);
      const changed = cursor.slice(0, at) + character + cursor.slice(at + 1);
      expect(() => codecAt(START).open(changed, BINDING, anything)).toThrow(
        expect.objectContaining({ code: 'invalid_cursor' }),
      );
    }),
    { numRuns: 500 },
  );
});

it('the cursor codec rejects forged cursors, and cursors signed with another secret', () => {
  const cursor = codecAt(START).issue(BINDING, ['box']);
  const foreign = codecAt(START, 'another secret, which is also long enough').issue(BINDING, ['box']);
  const [text = '', signature = ''] = cursor.split('.');
  const longer = [`${cursor}=`, ` ${cursor}`, `${cursor}.${signature}`];
  for (const forgery of [foreign, '{}', text, `${text}.`, `.${signature}`, ...longer]) {
    expect(() => codecAt(START).open(forgery, BINDING, anything)).toThrow(
      expect.objectContaining({ code: 'invalid_cursor' }),
    );
  }
});

it('the cursor codec rejects signed cursors of another release that it cannot parse', () => {
  const position = z.object({ after: z.int() });
  const sign = (text: string) => `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
  const binding = createHash('sha256').update(JSON.stringify(BINDING)).digest('base64url');
  const contents = [
    { issuedAt: START, binding, position: { offset: 10 } },
    { issuedAt: START, binding, position: 'box' },
    { issuedAt: START, binding },
    { issued: START, key: binding, position: { after: 1 } },
    { issuedAt: String(START), binding, position: { after: 1 } },
    ...[null, [], '', 0, { after: 1e300 }, { after: 1.5 }, { after: '1' }].map((foreign) => ({
      ...{ issuedAt: START, binding },
      position: foreign,
    })),
    ['metrics', 10],
    null,
  ];
  const texts = contents.map((content) => JSON.stringify(content));
  for (const text of [...texts, 'no JSON', '']) {
    const cursor = sign(Buffer.from(text).toString('base64url'));
    expect(() => codecAt(START).open(cursor, BINDING, position)).toThrow(
      expect.objectContaining({ code: 'invalid_cursor', status: 400 }),
    );
  }
});

const LISTS = { accounts: ACCOUNT_LIST_PARAMETERS, keys: API_KEY_LIST_PARAMETERS };

it.each([
  ...['limit=1', 'cursor=1', 'sort=1'].map(
    (query) => ['accounts', '2026-04-16', query, '2026-04-28, the first'] as const,
  ),
  ['accounts', '2026-04-16', 'x=1', 'takes none'],
  ...['limit=0', 'limit=x', 'sort=createdAt', 'sort=', 'page=2', 'limit=1&limit=1'].map(
    (query) => ['accounts', '2026-04-28', query, query.split('=')[0] ?? ''] as const,
  ),
  ['keys', '2026-04-28', 'sort=name:asc', 'sort must be one of createdAt:desc, createdAt:asc'],
  ['keys', '2026-04-28', 'page=2', 'limit, cursor, sort'],
] as const)('the list of %s at %s is rejected with %s: %s', (list, version, query, text) => {
  const details = [expect.objectContaining({ parameter: query.split('=')[0] })];
  expect(() => parseListRequest(query, version, LISTS[list])).toThrow(
    expect.objectContaining({ code: 'invalid_parameter', details, message: expect.stringContaining(text) }),
  );
});
