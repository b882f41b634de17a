export * from './content-reference.ts';
export * from './key-wrap.ts';
export * from './media-type.ts';
export * from './payload.ts';
