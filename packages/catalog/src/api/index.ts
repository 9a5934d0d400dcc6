export * from './answers.js';
export * from './api-keys.js';
export * from './bodies.js';
export * from './exact-json.js';
export * from './excluding.js';
export * from './limits.js';
export * from './parameters.js';
