export {
  decoded,
  digestOf,
  type Encoding,
  encodings,
  fileHeaders,
  type ListedFile,
  listName,
  parseWebList,
  pickEncoding,
  readWebFiles,
  readWebList,
  type ServedFile,
  type WebFileList,
} from './files.ts';
export { builtFolder } from './folder.ts';
export { isPublicNode, openWeb, type WebApp } from './open.ts';
export { guardHeaders, pagePolicy } from './page-headers.ts';
