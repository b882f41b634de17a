export * from './canonical.ts';
export * from './canonical-steps.ts';
export * from './diagnose.ts';
export { factsOf, type JsonFacts } from './facts.ts';
export * from './json-error.ts';
export { decodeUtf8, parseJson, parseJsonInSteps } from './parse.ts';
export * from './types.ts';
