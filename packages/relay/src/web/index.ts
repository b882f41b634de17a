export { pickEncoding, type ServedFile } from './files.ts';
export { messengerFolder } from './folder.ts';
export { openWeb, type WebApp } from './open.ts';
