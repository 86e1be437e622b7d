//! The API's types, as clients write and read them. No behaviour beyond defaults.
//!
//! * `chat`, `completion`: requests, responses and chunks of one route of OpenAI's each.
//! * `embeddings`: of vectors and scores.
//! * `responses`: the same of its newer route; `anthropic`: of Anthropic's routes;
//!   `ollama`: of Ollama's; `tokens`, `infill`: of llama.cpp's.
//! * `common`: what OpenAI's share: sampling, usage, models; `form`: what a text must look like.

mod anthropic;
mod chat;
mod common;
mod completion;
mod embeddings;
mod form;
mod infill;
mod ollama;
mod responses;
mod tokens;

pub use anthropic::{
    AnthropicContent, AnthropicConversation, AnthropicError, AnthropicErrorBody, AnthropicMessage,
    AnthropicRole, AnthropicText, AnthropicTool, AnthropicToolChoice, AnthropicUsage, BlockDelta,
    InputBlock, MessageEnd, MessagesEvent, MessagesRequest, MessagesResponse, NamedEvent,
    OutputBlock, OutputConfig, OutputSchema, TextBlock, Thinking, TokenCount,
};
pub use chat::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatRequest, ChatResponse, Content,
    Function, FunctionCall, FunctionDelta, LogprobContent, LogprobList, Message, ResponseFormat,
    ResponseMessage, Role, Schema, TextPart, Tool, ToolCall, ToolCallDelta, ToolChoice, TopLogprob,
};
pub use common::{Model, ModelList, SamplingFields, Stop, StreamOptions, Usage, UsageDetails};
pub use completion::{
    CompletionChoice, CompletionLogprobs, CompletionRequest, CompletionResponse, Prompts,
};
pub use embeddings::{
    EmbeddedText, EmbeddingEncoding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse,
    RankedText, RerankDocument, RerankRequest, RerankResponse, TextsUsage,
};
pub use form::{FormFields, StructuredOutputs};
pub use infill::{InfillRequest, InfillResponse};
pub use ollama::{
    OllamaAnswer, OllamaCall, OllamaChatRequest, OllamaCounts, OllamaDetails, OllamaEmbedRequest,
    OllamaEmbeddings, OllamaError, OllamaFields, OllamaFormat, OllamaFunction,
    OllamaGenerateRequest, OllamaMessage, OllamaModel, OllamaModels, OllamaOptions, OllamaSaid,
    OllamaShow, OllamaShowRequest, OllamaVersion, Think,
};
pub use responses::{
    AnswerItem, AnswerPart, AnswerReasoning, AnswerStatus, AnswerText, DeletedResponse,
    EventFields, IncompleteDetails, InputItem, InputTokens, ItemContent, ItemPart, OutputTokens,
    ReasoningOptions, ResponseError, ResponseObject, ResponsesEvent, ResponsesInput,
    ResponsesRequest, ResponsesTool, ResponsesToolChoice, ResponsesUsage, TextFormat, TextOptions,
};
pub use tokens::{
    DetokenizeRequest, DetokenizeResponse, TokenPiece, TokenizeRequest, TokenizeResponse,
    TokenizedToken,
};
