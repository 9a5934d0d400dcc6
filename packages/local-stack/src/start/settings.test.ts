import { describe, expect, it } from '@jest/globals';
import { readEnv, UsageError } from './settings.js';

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
