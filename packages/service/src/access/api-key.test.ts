import { expect, it } from '@jest/globals';
import { formatToken, generateToken, hashSecret, parseToken, secretMatches } from './api-key.js';

it('the text of an API key reads back as what was generated', () => {
  const token = generateToken();
  expect(parseToken(formatToken(token))).toEqual(token);
});

const valid = formatToken(generateToken());
it.each([
  ['nothing', ''],
  ['another kind of token', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'],
  ['another prefix', valid.replace('mlk', 'mlx')],
  ['upper case', valid.toUpperCase()],
  ['a digit less', valid.slice(0, -1)],
  ['a digit more', `${valid}0`],
  ['a newline at the end', `${valid}\n`],
  ['a space before', ` ${valid}`],
  ['an id that would reach another key of Redis', valid.replace(/_[0-9a-f]{24}_/, '_:account:acme_')],
])('the text of an API key is not %s', (_, text) => {
  expect(parseToken(text)).toBeUndefined();
});

it('a secret matches its own hash alone', () => {
  const { secret } = generateToken();
  expect(secretMatches(secret, hashSecret(secret))).toBe(true);
  expect(secretMatches(generateToken().secret, hashSecret(secret))).toBe(false);
});

it('a secret is hashed with SHA-256', () => {
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
