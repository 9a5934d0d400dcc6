export * from './azure-llm-trace.js';
