import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { readEnvironment } from '../settings/settings.js';
import { styleFor } from './style.js';

it.each<[string, boolean, Record<string, string>, string]>([
  ['a terminal', true, { TERM: 'xterm-256color' }, '\u001b[1mx\u001b[22m'],
  ['a pipe', false, { TERM: 'xterm-256color' }, 'x'],
  ['a terminal that is dumb', true, { TERM: 'dumb' }, 'x'],
  ['a terminal with NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '1' }, 'x'],
  ['a terminal with an empty NO_COLOR', true, { TERM: 'xterm', NO_COLOR: '' }, '\u001b[1mx\u001b[22m'],
])('strong text on %s', (_name, isTTY, variables, expected) => {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  expect(styleFor({ stdout, environment: readEnvironment(variables) }).strong('x')).toBe(expected);
});
