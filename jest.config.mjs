/** Runs the TypeScript sources directly as ES modules; `tsc -b` has type-checked them before. */
export default {
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  globalTeardown: '<rootDir>/test/setup/global-teardown.mjs',
  testEnvironment: '<rootDir>/test/setup/node-environment.mjs',
  testSequencer: '<rootDir>/test/setup/longest-first.mjs',
  reporters: ['default', '<rootDir>/test/setup/slowest-files.mjs'],
  // More than the cores of a small machine: many tests wait for servers, and for processes to end.
  maxWorkers: 4,
  // A test that hangs fails in the end; one on a machine that other work slows down does not.
  testTimeout: 120_000,
  // The default is the system's directory for temporary files, where it would stay behind.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testMatch: ['**/*.test.ts'],
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
    '^@meterline/([a-z-]+)/([a-z-]+)$': ['<rootDir>/packages/$1/src/$2.ts', '<rootDir>/packages/$1/src/$2/index.ts'],
    '^@meterline/([a-z-]+)$': ['<rootDir>/packages/$1/src/index.ts', '<rootDir>/services/$1/src/index.ts'],
  },
};
