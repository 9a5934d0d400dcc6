import { describe, expect, it } from '@jest/globals';
import { parseCommandLine, readEnv, UsageError } from './settings.js';

describe('the environment of npm start', () => {
  it.each([
    ['CLICKHOUSE_URL', 'http://127.0.0.1:8123/system'],
    ['CLICKHOUSE_URL', 'http://ann:secret@127.0.0.1:8123'],
    ['CLICKHOUSE_URL', 'http://127.0.0.1:8123?database=x'],
    ['REDIS_URL', 'redis://127.0.0.1:6379/abc'],
  ])('refuses %s=%s, which would override other variables or be taken for something else', (name, value) => {
    const read = () => readEnv({ [name]: value });
    expect(read).toThrow(UsageError);
    expect(read).toThrow(new RegExp(`^${name} must be a URL such as [^@]*$`));
  });
});

describe('the command line of npm start', () => {
  it('names the port of the collector', () => {
    expect(parseCommandLine(['--collector-port', '9081'])).toMatchObject({ collectorPort: 9_081, demo: true });
    expect(parseCommandLine([]).collectorPort).toBeUndefined();
  });

  it.each(['0', '65536', 'http', ''])('refuses %j as the port of the collector', (port) => {
    const parse = () => parseCommandLine(['--collector-port', port]);
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(/^--collector-port must be a whole number from 1 to 65535/);
  });
});
