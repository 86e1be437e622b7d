//! `/v1/embeddings`, `/v1/rerank` and Ollama's `/api/embed`: vectors of texts, and how well they answer
//! a query.

use super::generate::{Asked, Vectors, asked, vectors};
use crate::dialect::OllamaRefusals;
use crate::error::{ApiError, Refusals};
use crate::models::Models;
use crate::request::{Dimensions, prepare_embeddings, prepare_ollama_embed, prepare_rerank};
use crate::response::nanoseconds;
use crate::wire::{
    EmbeddedText, EmbeddingEncoding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse,
    OllamaCounts, OllamaEmbedRequest, OllamaEmbeddings, RankedText, RerankRequest, RerankResponse,
};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Instant;

/// Vectors of texts, each of length 1. For models whose file says how one is made of a text.
#[utoipa::path(
    post,
    path = "/v1/embeddings",
    request_body = EmbeddingsRequest,
    responses((status = 200, body = EmbeddingsResponse), Refusals),
)]
pub(crate) async fn embeddings(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<EmbeddingsResponse>, ApiError> {
    let prepare = |app: &_, request: EmbeddingsRequest| {
        let encoding = request.encoding_format.unwrap_or(EmbeddingEncoding::Float);
        Ok((prepare_embeddings(app, &request)?, encoding))
    };
    let Asked { made: ((texts, dimensions), encoding), by } =
        asked(&models, request, prepare).await?;
    let Vectors { app, vectors, usage } = vectors(by, texts).await?;
    let text = |(index, vector)| {
        let vector = unit(vector, dimensions)?;
        let embedding = match encoding {
            EmbeddingEncoding::Float => EmbeddingVector::Float(vector),
            EmbeddingEncoding::Base64 => EmbeddingVector::Base64(base64_of(&vector)),
        };
        Ok(EmbeddedText { object: "embedding", index, embedding })
    };
    let data = vectors.into_iter().enumerate().map(text).collect::<Result<_, ApiError>>()?;
    Ok(Json(EmbeddingsResponse { object: "list", data, model: app.name.clone(), usage }))
}

/// Texts in the order in which they answer a query, best first. For models with a classifier.
#[utoipa::path(
    post,
    path = "/v1/rerank",
    request_body = RerankRequest,
    responses((status = 200, body = RerankResponse), Refusals),
)]
pub(crate) async fn rerank(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<RerankResponse>, ApiError> {
    let prepare = |app: &_, request: RerankRequest| Ok((prepare_rerank(app, &request)?, request));
    let Asked { made: (texts, request), by } = asked(&models, request, prepare).await?;
    let Vectors { app, vectors: scores, usage } = vectors(by, texts).await?;
    let mut documents = request.documents.into_iter();
    let returned = request.return_documents == Some(true);
    let result = |(index, scores): (usize, Vec<f32>)| RankedText {
        index,
        relevance_score: scores.first().copied().unwrap_or(0.0),
        document: documents.next().filter(|_| returned),
    };
    let mut results: Vec<_> = scores.into_iter().enumerate().map(result).collect();
    results.sort_by(|one, other| other.relevance_score.total_cmp(&one.relevance_score));
    results.truncate(request.top_n.map_or(usize::MAX, |most| most as usize));
    Ok(Json(RerankResponse { object: "list", model: app.name.clone(), results, usage }))
}

/// Vectors of texts, each of length 1. For models whose file says how one is made of a text.
#[utoipa::path(
    post,
    path = "/api/embed",
    request_body = OllamaEmbedRequest,
    responses((status = 200, body = OllamaEmbeddings), OllamaRefusals),
)]
pub(crate) async fn ollama_embed(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<OllamaEmbeddings>, ApiError> {
    let started = Instant::now();
    let prepare = |app: &_, request: OllamaEmbedRequest| prepare_ollama_embed(app, &request);
    let Asked { made: (texts, dimensions), by } = asked(&models, request, prepare).await?;
    let Vectors { app, vectors, usage } = vectors(by, texts).await?;
    let vectors = vectors.into_iter().map(|vector| unit(vector, dimensions));
    Ok(Json(OllamaEmbeddings {
        model: app.name.clone(),
        embeddings: vectors.collect::<Result<_, _>>()?,
        counts: OllamaCounts {
            total_duration: Some(nanoseconds(started.elapsed())),
            load_duration: Some(0),
            prompt_eval_count: Some(usage.prompt_tokens),
            ..OllamaCounts::default()
        },
    }))
}

/// The first numbers of a vector, scaled to length 1.
fn unit(mut vector: Vec<f32>, dimensions: Dimensions) -> Result<Vec<f32>, ApiError> {
    if let Some(dimensions) = dimensions {
        let most = vector.len();
        if dimensions > most {
            let message = format!("`dimensions` must be at most {most}: the model makes so many");
            return Err(ApiError::invalid("dimensions", message));
        }
        vector.truncate(dimensions);
    }
    let length = vector.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    }
    Ok(vector)
}

fn base64_of(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_length_one_also_when_they_are_cut() {
        let vector = vec![3.0, 4.0, 12.0];
        assert_eq!(unit(vector.clone(), None).unwrap(), [3.0 / 13.0, 4.0 / 13.0, 12.0 / 13.0]);
        assert_eq!(unit(vector.clone(), Some(2)).unwrap(), [0.6, 0.8]);
        assert_eq!(unit(vec![0.0; 2], None).unwrap(), [0.0; 2], "no direction, and no error");
        assert!(unit(vector, Some(4)).is_err());
    }

    #[test]
    fn base64_has_the_least_byte_first() {
        assert_eq!(base64_of(&[1.0]), "AACAPw==");
    }
}
