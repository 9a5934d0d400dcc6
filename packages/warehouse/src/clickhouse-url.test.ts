import { describe, expect, it } from '@jest/globals';
import { clickHouseUrlFault } from './clickhouse-url.js';

describe('an address of ClickHouse', () => {
  it.each(['http://127.0.0.1:8123', 'http://127.0.0.1:8123/', 'https://clickhouse.example.com', 'http://[::1]:8123'])(
    'may be %s',
    (url) => {
      expect(clickHouseUrlFault(url)).toBeUndefined();
    },
  );

  it.each(['', '127.0.0.1', 'localhost:8123', 'tcp://127.0.0.1:9000', 'redis://127.0.0.1'])('must not be %j', (url) => {
    expect(clickHouseUrlFault(url)).toBe('must be a URL such as http://127.0.0.1:8123');
  });

  it.each([
    'http://127.0.0.1:8123/system',
    'http://ann:secret@127.0.0.1:8123',
    'http://ann@127.0.0.1:8123',
    'http://:secret@127.0.0.1:8123',
    'http://127.0.0.1:8123?database=system',
    'http://127.0.0.1:8123/#x',
  ])('must not say more than where it is: %s', (url) => {
    expect(clickHouseUrlFault(url)).toBe(
      'must be a URL such as http://127.0.0.1:8123 and nothing more: user, password and database are named by CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE',
    );
  });
});
