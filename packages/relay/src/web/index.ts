export { type Encoding, pickEncoding, type ServedFile } from './files.ts';
export { openWeb, type WebApp } from './open.ts';
