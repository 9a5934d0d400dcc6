/** Which bodies the schemas of new keys and new alerts reject, and how. */
import { expect, it } from '@jest/globals';
import { newAlertSchema, newApiKeySchema } from '@meterline/catalog';
import type { z } from 'zod';
import { parseBody } from './body.js';

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
  [{ role: 'operator' }, 'role', "emitter; an operator's key is made by the command line alone (got"],
  [{ ...KEY, ttl: 1 }, 'ttl', '"ttl" is not a member; the members are role, account, expiresAt.'],
  [{ ...KEY, expiresAt: '2026-01-01' }, 'expiresAt', 'expiresAt must be RFC 3339 in UTC'],
  [{ ...KEY, expiresAt: null }, 'expiresAt', 'expiresAt '],
  [{ ...KEY, account: '' }, 'account', 'account must be 1 to 256 characters'],
  [{ role: 'x', expiresAt: 'x', ttl: 1 }, 'role,expiresAt,ttl', 'role must be one of'],
])('the body %j of a new key is rejected at %s: %s', (...row) => expectRejected(newApiKeySchema, row));

const alert = (change: object, at: string, text: string): Row => [{ ...ALERT, ...change }, at, text];
const ofFilters = (filters: object, at: string, text: string) => alert({ filters }, `filters${at}`, text);
const THRESHOLDS = 'must be 1 to 10 whole numbers from 1 to 1000, ascending';

it.each<Row>([
  [{}, 'name,period,measure,amount,url', 'amount is missing'],
  alert({ colour: 'red' }, 'colour', '"colour" is not a member; the members are name, period'),
  alert({ period: 'week', measure: 'money' }, 'period,measure', 'period must be one of day, month (got "week").'),
  ...['0', '0.000', '-1', '1e3', '', 'x', ' 1', '1'.repeat(16), `0.${'1'.repeat(13)}`, 100, null].map((amount) =>
    alert({ amount }, 'amount', 'amount must be a decimal above 0 in a string'),
  ),
  ...[[], [50, 50], [80, 50], Array.from({ length: 11 }, (_, n) => n + 1), 50].map((thresholds) =>
    alert({ thresholds }, 'thresholds', THRESHOLDS),
  ),
  ...[0, 1001, 1.5, '50'].map((percent) => alert({ thresholds: [percent] }, 'thresholds.0', THRESHOLDS)),
  ofFilters({ colour: ['red'] }, '', 'no members but workspace, resourceType'),
  ofFilters({ resourceType: ['vm'] }, '.resourceType.0', 'filters.resourceType.0 must be one of sandbox'),
  ofFilters({ workspace: 'main' }, '.workspace', 'must be an array'),
  ofFilters({ workspace: [] }, '.workspace', 'must have a value or be left out'),
  ofFilters({ workspace: ['a\u0000'] }, '.workspace.0', 'without control characters'),
  ...['ftp://example.com', 'https://a:b@example.com', 'example.com', 'https://example.com/\r\nhooks', '']
    .concat(`https://example.com/${'a'.repeat(2_048)}`)
    .map((url) => alert({ url }, 'url', 'url must be an https URL of at most 2048 characters')),
])('the body %j of a new alert is rejected at %s: %s', (...row) => {
  expectRejected(newAlertSchema, row);
});
