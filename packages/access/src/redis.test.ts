import { describe, expect, it } from '@jest/globals';
import { redisUrlFault } from './redis.js';

describe('an address of Redis', () => {
  it.each([
    'redis://127.0.0.1:6379',
    'redis://redis',
    'redis://127.0.0.1:6379/',
    'redis://127.0.0.1:6379/15',
    'rediss://ann:secret@redis.example.com:6380/1',
    'redis://:secret@[::1]:6379',
  ])('may be %s', (url) => {
    expect(redisUrlFault(url)).toBeUndefined();
  });

  it.each(['', 'localhost', 'localhost:6379', 'redis:///1', 'http://127.0.0.1:6379', '/run/redis.sock'])(
    'must not be %j',
    (url) => {
      expect(redisUrlFault(url)).toBe('must be a URL such as redis://127.0.0.1:6379');
    },
  );

  it.each(['/abc', '/1/', '/-1', '/1e3', '/%31', '?db=abc', '/1?keyPrefix=x', '#x'])('must not end with %s', (end) => {
    expect(redisUrlFault(`redis://127.0.0.1:6379${end}`)).toBe(
      'must be a URL such as redis://127.0.0.1:6379 with nothing after it but the number of a database, such as /1',
    );
  });
});
