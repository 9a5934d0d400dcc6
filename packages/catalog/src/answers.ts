/** The schemas of answers, without those of parameters: with `zod/mini`, which is all that a client checks with. */
export * from './api/answers.js';
export * from './api/api-keys.js';
