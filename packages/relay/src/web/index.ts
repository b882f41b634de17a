export {
  type Encoding,
  fileHeaders,
  pickEncoding,
  readWebFiles,
  type ServedFile,
} from './files.ts';
export { builtFolder } from './folder.ts';
export { openWeb, type WebApp } from './open.ts';
