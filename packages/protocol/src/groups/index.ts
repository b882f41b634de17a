export * from './bodies.ts';
export * from './boxes.ts';
export * from './fields.ts';
export * from './ids.ts';
export * from './records.ts';
export * from './secrets.ts';
export * from './signing.ts';
