export * from './no-federation.ts';
export * from './registry.ts';
