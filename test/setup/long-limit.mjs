/** The limit of a long test, in place of `testTimeout` in jest.config.mjs. */
import { jest } from '@jest/globals';

jest.setTimeout(1_800_000);
