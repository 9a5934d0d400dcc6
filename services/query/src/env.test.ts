import { expect, it } from '@jest/globals';
import { EnvError } from '@meterline/service/environment';
import { readEnv } from './env.js';

const SECRET = { CURSOR_SECRET: 'x'.repeat(32) };

function problemsOf(variables: NodeJS.ProcessEnv): readonly string[] {
  try {
    readEnv({ ...SECRET, ...variables });
  } catch (error) {
    if (error instanceof EnvError) return error.problems;
    throw error;
  }
  throw new Error('the environment was accepted');
}

it('the environment of query accepts constants as JSON, and rejects unknown constants', () => {
  expect(readEnv({ ...SECRET, METERLINE_CONSTANTS: '{"statements":2}' }).METERLINE_CONSTANTS.statements).toBe(2);
  for (const text of ['{"statement":2}', '{"statements":-1}', '[]', '{']) {
    expect(problemsOf({ METERLINE_CONSTANTS: text })).toEqual([expect.stringMatching(/^METERLINE_CONSTANTS /)]);
  }
});

it('the environment of query treats an empty variable as not set', () => {
  expect(readEnv({ ...SECRET, PORT: '', CORS_ORIGINS: '', AUTH_ISSUER: '' })).toEqual(readEnv(SECRET));
});

it.each([
  ...['127.0.0.1', '::1', '0.0.0.0'].map((address) => ['LISTEN_HOST', address, address] as const),
  ['TRUST_PROXY', '2', 2],
  ['TRUST_PROXY', 'false', false],
  ['TRUST_PROXY', 'loopback, 10.0.0.0/8,::1', ['loopback', '10.0.0.0/8', '::1']],
  ['COLLECTOR_URL', 'https://api.example.com/collector/', 'https://api.example.com/collector'],
] as const)('the environment of query may have %s %s', (name, text, value) => {
  expect(readEnv({ ...SECRET, [name]: text })[name]).toEqual(value);
});

it('the environment of query names the missing token variables', () => {
  expect(problemsOf({ AUTH_ADMIN_ROLES: 'owner' })).toEqual([
    'AUTH_ADMIN_ROLES has no effect without tokens: also set AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE',
  ]);
  expect(problemsOf({ AUTH_ISSUER: 'i', AUTH_AUDIENCE: 'a' })).toEqual([
    'AUTH_JWKS_URL missing: set all of AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE, or none of them to accept API keys only',
  ]);
});

it.each([
  ['REDIS_URL', 'http://127.0.0.1'],
  ['CLICKHOUSE_URL', 'tcp://127.0.0.1'],
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['PORT', '-1'],
  ...['0', '1000001', '1e3', '0.5', ' '].map((text) => ['STATEMENT_MB', text]),
  ['PORT', '0x50'],
  // A shell would take some of them for more than an address.
  ...['collector.example.com', 'https://x/$(id)', "https://x/'", 'https://ann:pass@x', 'https://x?a=b'].map((url) => [
    'COLLECTOR_URL',
    url,
  ]),
  ['CURSOR_SECRET', 'x'.repeat(31)],
  ['CORS_ORIGINS', 'https://a.example.com/'],
  ['CORS_ORIGINS', '*'],
  ['FRAME_ANCESTORS', "https://a.example.com 'self'"],
  ['AUTH_ACCOUNTS_CLAIM', 'app..accounts'],
  ['AUTH_ADMIN_ROLES', 'admin,'],
  ['PUBLIC_URL', 'https://billing.example.com/?v0'],
  ['TRUST_PROXY', 'true'],
  ['TRUST_PROXY', '10.0.0.0/33'],
  ['TRUST_PROXY', '10.0.0.0/0'],
  ['TRUST_PROXY', '010.0.0.1'],
  ['TRUST_PROXY', '10/8'],
  ['LISTEN_HOST', 'localhost'],
  ['LOG_LEVEL', 'loud'],
])('the environment of query is rejected with %s=%s in one line that names it', (name = '', value = '') => {
  const problems = problemsOf({ [name]: value });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(new RegExp(`^${name} must [^\\n]+$`));
});
