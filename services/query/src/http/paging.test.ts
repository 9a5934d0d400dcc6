import { createHash, createHmac } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { ACCOUNT_LIST_PARAMETERS, API_KEY_LIST_PARAMETERS } from '@meterline/catalog';
import fc from 'fast-check';
import { z } from 'zod';
import { CursorCodec, parseListRequest } from './paging.js';

const SECRET = 'a secret of at least 32 characters';
const BINDING = ['metrics', 'caller', 'acme'];
const START = Date.parse('2025-10-01T00:00:00Z');

function codecAt(milliseconds: number, secret = SECRET): CursorCodec {
  return new CursorCodec(secret, () => new Date(milliseconds));
}

const anything = z.unknown();

it('the cursor codec gives back what was put in', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (position) => {
      const cursor = codecAt(START).issue(BINDING, position);
      expect(cursor).toMatch(/^[\w-]+\.[\w-]{43}$/);
      expect(codecAt(START).open(cursor, BINDING, z.array(z.string()))).toEqual(position);
    }),
  );
});

it('the cursor codec refuses every text that differs in one character', () => {
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

it('the cursor codec refuses what was made up, and what another secret has signed', () => {
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

it('the cursor codec refuses what another release has signed and this one cannot read', () => {
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
