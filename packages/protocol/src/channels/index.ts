export * from './bounds.ts';
export * from './content.ts';
export * from './descriptor.ts';
export * from './events.ts';
export * from './ids.ts';
export * from './projection.ts';
export * from './references.ts';
