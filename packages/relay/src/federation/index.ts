export * from './alone.ts';
export * from './registry.ts';
