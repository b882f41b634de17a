export * from './alone.ts';
