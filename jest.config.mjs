/** Runs the TypeScript sources as ES modules; `tsc -b` type-checks them. test/README.md explains the three kinds of test. */
// Not UTC, and with daylight saving time: code that uses local time by mistake fails. `TZ=… npm test` uses another.
process.env.TZ ||= 'America/New_York';

const every = {
  // Without node_modules at the root, which takes a second to look through.
  roots: ['<rootDir>/packages', '<rootDir>/services', '<rootDir>/test'],
  testEnvironment: '<rootDir>/test/setup/node-environment.mjs',
  // The default is the system's directory for temporary files, where it would stay behind.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^@meterline/([a-z-]+)/([a-z/-]+)$': [
      '<rootDir>/packages/$1/src/$2.ts',
      '<rootDir>/packages/$1/src/$2/index.ts',
      '<rootDir>/services/$1/src/$2.ts',
    ],
    '^@meterline/([a-z-]+)$': ['<rootDir>/packages/$1/src/index.ts', '<rootDir>/services/$1/src/index.ts'],
  },
};
/** Jest starts the servers once for both kinds that need them, and not at all when only units run. */
const withServers = {
  ...every,
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  globalTeardown: '<rootDir>/test/setup/global-teardown.mjs',
};

export default {
  projects: [
    { ...every, displayName: 'unit', testMatch: ['**/!(*.it|*.long).test.ts'] },
    { ...withServers, displayName: 'it', testMatch: ['**/*.it.test.ts'] },
    {
      ...withServers,
      displayName: 'long',
      testMatch: ['**/*.long.test.ts'],
      setupFilesAfterEnv: ['<rootDir>/test/setup/long-limit.mjs'],
    },
  ],
  testSequencer: '<rootDir>/test/setup/longest-first.mjs',
  reporters: ['default', '<rootDir>/test/setup/slowest-files.mjs'],
  // More than the cores of a small machine: many tests wait for servers, and for processes to end.
  maxWorkers: 4,
  // The limit of a test. Only a test that hangs reaches it, also on a busy machine; LIMIT_MS of test/harness/waiting.ts is below it.
  testTimeout: 300_000,
};
