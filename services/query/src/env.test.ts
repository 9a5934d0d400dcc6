import { describe, expect, it } from '@jest/globals';
import { EnvError } from '@meterline/service';
import { readEnv } from './env.js';

const SECRET = { CURSOR_SECRET: 'x'.repeat(32) };

function faultsOf(variables: NodeJS.ProcessEnv): readonly string[] {
  try {
    readEnv({ ...SECRET, ...variables });
  } catch (error) {
    if (error instanceof EnvError) return error.faults;
    throw error;
  }
  throw new Error('the environment was accepted');
}

describe('readEnv', () => {
  it('has a default for everything but the cursor secret', () => {
    expect(readEnv(SECRET)).toEqual({
      REDIS_URL: 'redis://127.0.0.1:6379',
      CLICKHOUSE_URL: 'http://127.0.0.1:8123',
      CLICKHOUSE_USER: 'default',
      CLICKHOUSE_PASSWORD: '',
      CLICKHOUSE_DATABASE: 'meterline',
      MAX_STORED_GROUPS: 5_000_000,
      METRICS_SOURCE: 'cells',
      PORT: 8080,
      ...SECRET,
      CORS_ORIGINS: [],
      TRUST_PROXY: false,
      LOG_LEVEL: 'info',
      tokens: undefined,
    });
  });

  it('takes an empty variable for one that is not set', () => {
    expect(readEnv({ ...SECRET, PORT: '', CORS_ORIGINS: '', AUTH_ISSUER: '' })).toEqual(readEnv(SECRET));
  });

  it.each(['127.0.0.1', '::1', '0.0.0.0'])('may listen on %s alone', (address) => {
    expect(readEnv({ ...SECRET, LISTEN_HOST: address }).LISTEN_HOST).toBe(address);
  });

  it.each<[string, unknown]>([
    ['2', 2],
    ['false', false],
    ['loopback, 10.0.0.0/8,::1', ['loopback', '10.0.0.0/8', '::1']],
  ])('reads TRUST_PROXY %s', (text, value) => {
    expect(readEnv({ ...SECRET, TRUST_PROXY: text }).TRUST_PROXY).toEqual(value);
  });

  it('accepts tokens when all three of their variables are there', () => {
    const variables = { AUTH_JWKS_URL: 'https://a.example.com/jwks', AUTH_ISSUER: 'i', AUTH_AUDIENCE: 'a' };
    expect(readEnv({ ...SECRET, ...variables }).tokens).toEqual({
      jwksUrl: 'https://a.example.com/jwks',
      issuer: 'i',
      audience: 'a',
    });
    expect(faultsOf({ AUTH_ISSUER: 'i', AUTH_AUDIENCE: 'a' })).toEqual([
      'AUTH_JWKS_URL missing: set all of AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE, or none to accept API keys only',
    ]);
  });

  it.each([
    ['REDIS_URL', 'http://127.0.0.1'],
    ['REDIS_URL', '127.0.0.1:6379'],
    ['CLICKHOUSE_URL', 'tcp://127.0.0.1'],
    ['CLICKHOUSE_URL', 'http://127.0.0.1:8123/system'],
    ['CLICKHOUSE_URL', 'http://ann:secret@127.0.0.1:8123'],
    ['CLICKHOUSE_URL', 'http://127.0.0.1:8123?database=x'],
    ['REDIS_URL', 'redis://127.0.0.1:6379/abc'],
    ['PORT', '65536'],
    ['PORT', '80a'],
    ['PORT', '-1'],
    ['CURSOR_SECRET', 'x'.repeat(31)],
    ['CORS_ORIGINS', 'https://a.example.com/'],
    ['CORS_ORIGINS', '*'],
    ['TRUST_PROXY', 'true'],
    ['TRUST_PROXY', '10.0.0.0/33'],
    ['LISTEN_HOST', 'localhost'],
    ['LOG_LEVEL', 'loud'],
  ])('refuses %s=%s in one line that names it', (name, value) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name} must [^\\n]+$`));
  });
});
