// src/context/memory-tool.ts
import { Tool, ToolContext, ToolResult } from '../tools/types';
import { z } from 'zod';
import * as fs from 'fs';
import * as path from 'path';

const MemoryInputSchema = z.object({
  command: z.enum(['view', 'create', 'str_replace', 'insert', 'delete', 'rename']),
  path: z.string(),
  file_text: z.string().optional(),
  view_range: z.tuple([z.number(), z.number()]).optional(),
  old_str: z.string().optional(),
  new_str: z.string().optional(),
  insert_line: z.number().optional(),
  insert_text: z.string().optional(),
  old_path: z.string().optional(),
  new_path: z.string().optional(),
});

export class MemoryTool implements Tool<z.infer<typeof MemoryInputSchema>> {
  name = 'memory';
  description = `Store and retrieve information across context resets.
Commands: view, create, str_replace, insert, delete, rename.
Use /memories as the base path.`;

  parameters = MemoryInputSchema;
  private baseDir: string;

  constructor(baseDir?: string) {
    this.baseDir = baseDir || path.join(process.env.HOME || '~', '.mycode', 'memories');
    if (!fs.existsSync(this.baseDir)) {
      fs.mkdirSync(this.baseDir, { recursive: true });
    }
  }

  async execute(input: z.infer<typeof MemoryInputSchema>): Promise<ToolResult> {
    const sanitizedPath = this.sanitizePath(input.path);
    if (!sanitizedPath) {
      return { error: `Invalid path: ${input.path}` };
    }

    switch (input.command) {
      case 'view':
        return this.handleView(sanitizedPath, input.view_range);
      case 'create':
        return this.handleCreate(sanitizedPath, input.file_text || '');
      case 'str_replace':
        return this.handleStrReplace(sanitizedPath, input.old_str!, input.new_str!);
      case 'insert':
        return this.handleInsert(sanitizedPath, input.insert_line!, input.insert_text!);
      case 'delete':
        return this.handleDelete(sanitizedPath);
      case 'rename':
        return this.handleRename(sanitizedPath, this.sanitizePath(input.new_path!)!);
      default:
        return { error: `Unknown command: ${input.command}` };
    }
  }

  private sanitizePath(inputPath: string): string | null {
    const normalized = inputPath.replace(/^\/memories\/?/, '');
    const fullPath = path.join(this.baseDir, normalized);
    const resolved = path.resolve(fullPath);
    if (!resolved.startsWith(this.baseDir)) return null;
    return resolved;
  }

  private handleView(filePath: string, range?: [number, number]): ToolResult {
    if (!fs.existsSync(filePath)) {
      return { error: `Path does not exist: ${filePath}` };
    }
    const stat = fs.statSync(filePath);
    if (stat.isDirectory()) {
      const entries = fs.readdirSync(filePath);
      return { content: `Directory contents:\n${entries.join('\n')}` };
    }
    const content = fs.readFileSync(filePath, 'utf-8');
    const lines = content.split('\n');
    const start = range ? range[0] - 1 : 0;
    const end = range ? range[1] : lines.length;
    return {
      content: lines.slice(start, end).map((l, i) =>
        `${String(start + i + 1).padStart(6)} ${l}`
      ).join('\n')
    };
  }

  private handleCreate(filePath: string, content: string): ToolResult {
    if (fs.existsSync(filePath)) {
      return { error: `File already exists: ${filePath}` };
    }
    fs.mkdirSync(path.dirname(filePath), { recursive: true });
    fs.writeFileSync(filePath, content, 'utf-8');
    return { content: `File created: ${filePath}` };
  }

  private handleStrReplace(filePath: string, oldStr: string, newStr: string): ToolResult {
    const content = fs.readFileSync(filePath, 'utf-8');
    if (!content.includes(oldStr)) {
      return { error: `String not found: ${oldStr}` };
    }
    fs.writeFileSync(filePath, content.replace(oldStr, newStr), 'utf-8');
    return { content: 'File updated successfully' };
  }

  private handleInsert(filePath: string, line: number, text: string): ToolResult {
    const content = fs.readFileSync(filePath, 'utf-8');
    const lines = content.split('\n');
    lines.splice(line, 0, text);
    fs.writeFileSync(filePath, lines.join('\n'), 'utf-8');
    return { content: `Inserted at line ${line}` };
  }

  private handleDelete(filePath: string): ToolResult {
    fs.rmSync(filePath, { recursive: true });
    return { content: `Deleted: ${filePath}` };
  }

  private handleRename(oldPath: string, newPath: string): ToolResult {
    fs.renameSync(oldPath, newPath);
    return { content: `Renamed to: ${newPath}` };
  }
}
