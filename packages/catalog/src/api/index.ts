export * from './answers.js';
export * from './exact-json.js';
export * from './parameters.js';
