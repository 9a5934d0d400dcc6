import { expect, it } from '@jest/globals';
import { EnvError } from '@meterline/service/environment';
import { choosePort } from './services.js';
import { parseCommandLine, readEnv } from './settings.js';
import { clickHouseLogins } from './stack.js';

it.each([
  ['CLICKHOUSE_URL', 'http://127.0.0.1:8123/system'],
  ['CLICKHOUSE_URL', 'http://ann:secret@127.0.0.1:8123'],
  ['CLICKHOUSE_URL', 'http://127.0.0.1:8123?database=x'],
  ['REDIS_URL', 'redis://127.0.0.1:6379/abc'],
])('npm start rejects %s=%s, which would override other variables or be misread', (name, value) => {
  const read = () => readEnv({ [name]: value });
  expect(read).toThrow(EnvError);
  expect(read).toThrow(new RegExp(`^${name} must be a URL such as [^@]*$`));
});

it('npm start reads its command line, and rejects invalid and repeated options', () => {
  expect(parseCommandLine([])).toEqual({ demo: true, shards: 1, collectorPort: undefined, help: false });
  const given = parseCommandLine(['--collector-port', '9081', '--no-demo']);
  expect(given).toMatchObject({ collectorPort: 9_081, demo: false });
  for (const port of ['65536', 'http', '']) {
    const parse = () => parseCommandLine(['--collector-port', port]);
    expect(parse).toThrow(EnvError);
    expect(parse).toThrow(/^--collector-port must be a whole number from 0 to 65535/);
  }
  const twice = () => parseCommandLine(['--shards', '1', '--shards=4']);
  expect(twice).toThrow(/^--shards must not be repeated/);
  expect(() => parseCommandLine(['--port', '9000'])).toThrow(/'--port'.*; the variable PORT sets the port of the API/);
});

it('the API and the collector get different ports', async () => {
  const say = () => undefined;
  await expect(choosePort('the collector', 9, 8081, say, 9)).rejects.toThrow('cannot both listen on port 9');
  expect(await choosePort('the collector', undefined, 8081, say, 8081)).not.toBe(8081);
});

it('npm start uses the cluster of servers from the environment', () => {
  const given = { CLICKHOUSE_URL: 'http://a:8123,http://b:8123', CLICKHOUSE_CLUSTER: 'meterline' };
  const none = {
    shards: [],
    get clickhouse(): never {
      throw new Error('no server was started');
    },
  };
  expect(clickHouseLogins(readEnv(given), none)('ingest')).toMatchObject(given);
});
