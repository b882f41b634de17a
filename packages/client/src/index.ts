export * from './connect/index.ts';
export * from './environment.ts';
export * from './errors.ts';
export * from './network/discovery.ts';
export * from './store/index.ts';
